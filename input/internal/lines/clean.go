package lines

import "bytes"

// Clean removes from a line what is not the tool's: a carriage return, terminal
// escape codes, a byte order mark, and the mark of a launcher before it. It
// keeps indentation. The result shares memory with line unless escape codes had
// to be cut out.
func Clean(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = stripEscapes(line)
	}
	return line[launcherMark(line):]
}

// stripEscapes copies a line without its terminal codes: ESC [ … letter, ESC ]
// … BEL, and ESC with one character.
func stripEscapes(line []byte) []byte {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != 0x1b {
			out = append(out, line[i])
			continue
		}
		if i++; i >= len(line) {
			break
		}
		switch line[i] {
		case '[':
			for i++; i < len(line) && (line[i] < 0x40 || line[i] > 0x7e); i++ {
			}
		case ']':
			for i++; i < len(line) && line[i] != 0x07; i++ {
			}
		}
	}
	return out
}

// launcherMark is the length of what a launcher wrote before the line:
// "[1,0]<stdout>:" (mpirun), "0: " (srun -l), "(RayWorker pid=12) " (Ray).
func launcherMark(line []byte) int {
	if len(line) == 0 {
		return 0
	}
	switch c := line[0]; {
	case c == '[':
		end := bytes.IndexByte(line[:min(len(line), 64)], '>')
		if end < 0 {
			return 0
		}
		mark := line[:end]
		if !bytes.HasSuffix(mark, []byte("]<stdout")) && !bytes.HasSuffix(mark, []byte("]<stderr")) {
			return 0
		}
		end++
		if end < len(line) && line[end] == ':' {
			end++
		}
		return end
	case c == '(':
		end := bytes.Index(line[:min(len(line), 128)], []byte(") "))
		if end > 0 && bytes.Contains(line[:end], []byte(" pid=")) {
			return end + 2
		}
	case c == ' ' || c >= '0' && c <= '9':
		return rankMark(line)
	}
	return 0
}

// rankMark is the length of "  12: ", which srun -l writes right-aligned.
func rankMark(line []byte) int {
	i := 0
	for i < len(line) && i < 8 && line[i] == ' ' {
		i++
	}
	digits := i
	for i < len(line) && i-digits < 8 && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == digits || i+1 >= len(line) || line[i] != ':' || line[i+1] != ' ' {
		return 0
	}
	return i + 2
}
