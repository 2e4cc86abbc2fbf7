package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// malicious are pickles that do something when Python loads them. Each is refused before its end.
var malicious = map[string]string{
	"os.system by GLOBAL and REDUCE": "\x80\x02cposix\nsystem\n\x85X\x02\x00\x00\x00id\x85R.",
	"the same in protocol 0":         "cos\nsystem\n(S'id'\ntR.",
	"STACK_GLOBAL of protocol 4":     "\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
	"INST":                           "\x80\x02(X\x02\x00\x00\x00idios\nsystem\n.",
	"OBJ":                            "\x80\x02(cos\nsystem\nX\x02\x00\x00\x00ido.",
	"NEWOBJ":                         "\x80\x02ccollections\nOrderedDict\n)\x81.",
	"NEWOBJ_EX":                      "\x80\x04\x8c\x08builtins\x8c\x04dict\x93)}\x92.",
	"BUILD on an object":             "\x80\x02cbuiltins\nobject\n)\x81}b.",
	"a persistent id":                "\x80\x02X\x01\x00\x00\x00aQ.",
	"a persistent id of protocol 0":  "\x80\x02Pa\n.",
	"the registry of extensions":     "\x80\x02\x82\x01.",
	"eval behind good data": "\x80\x02}(X\x07\x00\x00\x00entries](cbuiltins\neval\n" +
		"X\x01\x00\x00\x001\x85Reu.",
	"an out-of-band buffer":                  "\x80\x05\x97.",
	"a set with items of any kind":           "\x80\x04\x8f(K\x01\x90.",
	"bytes that could be code":               "\x80\x03C\x02id.",
	"a string of 4 GiB":                      "\x80\x02X\xff\xff\xff\xff.",
	"a string of 2^63":                       "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
	"an integer of 2 GiB":                    "\x80\x02\x8b\xff\xff\xff\x7f.",
	"an integer of 255 bytes":                "\x80\x02\x8a\xff" + strings.Repeat("\xff", 255) + ".",
	"a memo slot of 4 billion":               "\x80\x02Nr\xff\xff\xff\xff.",
	"a memo slot that was never filled":      "\x80\x02h\x05.",
	"a list without a mark":                  "\x80\x02]e.",
	"values for no list":                     "\x80\x02N(Ne.",
	"a key without a value":                  "\x80\x02}(Nu.",
	"POP below the bottom":                   "\x80\x020.",
	"nothing at all":                         "\x80\x02.",
	"two values":                             "\x80\x02NN.",
	"a mark that stays":                      "\x80\x02(.",
	"a tuple of more than there is":          "\x80\x02N\x87.",
	"DUP, which multiplies":                  "\x80\x02]2.",
	"a protocol of the future":               "\x80\xffN.",
	"cut off":                                "\x80\x02}(X\x07\x00\x00\x00ent",
	"a frame that claims 2^64 bytes and RED": "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffR.",
}

func TestMaliciousPicklesAreRefused(t *testing.T) {
	for name, p := range malicious {
		if v, err := Read([]byte(p)); err == nil {
			t.Errorf("%s: read as %v", name, v)
		}
	}
	for _, name := range []string{
		"os.system by GLOBAL and REDUCE", "STACK_GLOBAL of protocol 4", "eval behind good data", "NEWOBJ", "a persistent id",
	} {
		if _, err := Read([]byte(malicious[name])); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want that it is refused", name, err)
		}
	}
}

// TestBombs reads pickles that stand for far more than they are long: what they cost is bounded by their length.
func TestBombs(t *testing.T) {
	// a list of lists of lists, each holding the one before ten times: 10^60 elements
	b := []byte{0x80, 2, ']', 'q', 0}
	for i := range byte(60) {
		b = append(b, ']', '(')
		for range 10 {
			b = append(b, 'h', i)
		}
		b = append(b, 'e', 'q', i+1)
	}
	b = append(b, '.')
	// only the last is left on the stack in a well-formed one; here all are
	if _, err := Read(b); err == nil {
		t.Error("61 lists on the stack were taken for one value")
	}
	// a list that holds itself
	v, err := Read([]byte{0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})
	if l, ok := v.(*[]any); err != nil || !ok || len(*l) != 1 || (*l)[0] != v {
		t.Errorf("a list in itself: %v %v", v, err)
	}
	// many small lists one after the other, and one list filled one by one
	big := append([]byte{0x80, 2, ']'}, bytes.Repeat([]byte{'K', 1, 'a'}, 1<<18)...)
	v, err = Read(append(big, '.'))
	if l, ok := v.(*[]any); err != nil || !ok || len(*l) != 1<<18 {
		t.Errorf("a list of %d: %v", 1<<18, err)
	}
	// nested as deep as it is long
	deep := append([]byte{0x80, 2}, bytes.Repeat([]byte("(]"), 1<<18)...)
	if _, err := Read(append(deep, '.')); err == nil {
		t.Error("marks that stay were taken for a value")
	}
}

func TestData(t *testing.T) {
	b := []byte("\x80\x02}(X\x01\x00\x00\x00aq\x00](K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x8a\x01\xfe\x88NeX\x01\x00\x00\x00bG")
	b = binary.BigEndian.AppendUint64(b, 0x3ff8000000000000)
	b = append(b, "u."...)
	v, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	want := &map[string]any{"a": &[]any{int64(7), int64(513), int64(-1), int64(1 << 60), int64(-2), true, nil}, "b": 1.5}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%v, want %v", v, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, p := range malicious {
		f.Add([]byte(p))
	}
	f.Add([]byte("\x80\x02}(X\x01\x00\x00\x00aq\x00](K\x07\x85eu."))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Read(data)
		_, _ = ReadJSON(data)
	})
}
