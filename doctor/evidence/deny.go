package evidence

import (
	"fmt"
	"strings"
	"unicode"

	"busbar.dev/internal/lazyre"
)

// message is what programs print about a fault, in the words in which people speak of it. Recognisers of printed
// messages do not know whether a sentence affirms one.
const message = `(?:Xids?(?: errors?)?(?:[ :]+\d+)?|(?:CUDA |GPU )?out[- ]of[- ]memory(?: errors?)?|(?:CUDA )?OOMs?|(?:(?:IB|InfiniBand|NIC|port) )?link[- ](?:flaps?|flapping|downs?)|` +
	`(?:a |the )?(?:GPUs? )?(?:has |have |is |that has )?(?:fallen|fell|falling) off the bus|GPU is lost|(?:uncorrectable |double[- ]bit |correctable )*(?:ECC|NVLink|PCIe|AER|bus|CUDA 802) errors?|` +
	`illegal memory access(?:es)?|segmentation faults?|segfaults?|IO_PAGE_FAULTs?|unhandled (?:system|cuda) errors?|Duplicate GPU detected|core dumps?|machine checks?)`

// denied messages: "no Xid 79", "we never saw CUDA out of memory", "Xid 79 was fixed last week by another GPU", "the
// link is not down".
var deniedMessages = lazyre.New(
	`(?i)\b(?:(?:there (?:is|are|was|were) (?:no|not any|never))|(?:(?:we|i|they|it) )?(?:have |has |had )?never (?:saw|see|seen|had|got|get|hit|observed?)|(?:(?:we|i|they) )?(?:do|did|does)(?: not|n't) (?:see|get|have|show|find|observe|hit)|` +
		`no signs? of|no|not|nor|without|zero|free of|neither)(?: (?:a|an|any|the|single|more|other|further|such|is|was))* ` +
		message + `(?:,? (?:or|nor|and no|no) ` + message + `)*\b` +
		`|\b` + message +
		` (?:(?:was|were|is|are|has been|have been|had been|got|been) (?:\w+ )?)?(?:fixed|resolved|solved|gone|cured|repaired|ruled out|not (?:seen|present|there)|never seen|absent)\b[^,.;]*` +
		`|\b` + message +
		` (?:went away|disappeared|(?:did|does|do) not (?:happen|appear|occur)|never (?:happened|appeared|occurred|came))\b` +
		`|\b(?:GPUs? )?(?:did|does|do|has|have|is|was)(?: not|n't|n’t) (?:fall|fallen|fell) off the bus` +
		`|\b(?:link|port)s?\b[^,.;]{0,30}?\b(?:not|never|isn't|aren't) (?:went |going |gone |been )?down\b`)

// withoutDenied is what somebody says without the messages that are said not to be there, or no more.
func withoutDenied(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if Sentence(line) && deniedMessages.MatchString(line) {
			line = deniedMessages.ReplaceAllString(line, "–")
		}
		b.WriteString(line)
	}
	return b.String()
}

// foreignWords are common ones of other languages that are none in English.
var foreignWords = strings.Fields("das der ist nicht beim bleibt und auf mit wird warum ein eine dem den zweiten la " +
	"le les est sur des du une dans avec ne pas pourquoi el los las una esta en con por que os um uma il lo di che per " +
	"non della")

// notEnglish refuses a sentence in another language: its words would be weighed as if they were English ones.
func notEnglish(text string) error {
	letters, far := 0, 0
	for _, c := range text {
		if unicode.IsLetter(c) {
			if letters++; c > unicode.MaxLatin1 {
				far++
			}
		}
	}
	foreign, total := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		total++
		for _, f := range foreignWords {
			if w == f {
				foreign++
			}
		}
	}
	if 2*far > letters || foreign >= 2 && 6*foreign >= total && !english(text) {
		return fmt.Errorf("%.60q is not understood; expected a description in English, or files: logs and outputs of tools",
			text)
	}
	return nil
}
