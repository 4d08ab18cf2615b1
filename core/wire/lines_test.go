package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*keepSize) // over both sizes, so that the buffer is given away
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a", ""}},
		{"a\n\nb\r\n", []string{"a", "", "b\r", ""}},
		{long + "\nb\n" + long, []string{long, "b", long}},
		{strings.Repeat("y", 4*keepSize) + "\nb", []string{"long", "b"}},
		{strings.Repeat("y", 4*keepSize), []string{"long", ""}},
		{strings.Repeat("y", 3*keepSize+1) + "\n", []string{"long", ""}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":   strings.NewReader(test.in),
			"dataerr": iotest.DataErrReader(strings.NewReader(test.in)),
		} {
			got, err := readLines(newLineReader(r, 3*keepSize))
			if err != io.EOF || !slices.Equal(got, test.want) {
				t.Errorf("%s, %.20q: %d lines, %v, want %d", name, test.in, len(got), err, len(test.want))
			}
		}
	}
}

func TestLineReaderInSmallPieces(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	var want []string
	for n := range 300 {
		line := strings.Repeat("z", n*7)
		want = append(want, line)
		fmt.Fprintln(&in, line)
	}
	for _, r := range []io.Reader{
		iotest.OneByteReader(strings.NewReader(in.String())),
		iotest.HalfReader(strings.NewReader(in.String())),
	} {
		got, err := readLines(newLineReader(r, DefaultMaxLine))
		if err != io.EOF || !slices.Equal(got, append(want, "")) {
			t.Errorf("%d lines, %v, want %d", len(got), err, len(want)+1)
		}
	}
}

func TestLineReaderError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := readLines(newLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 100))
	if err != broken || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// readLines reads all lines, the one that comes with the error included.
func readLines(l *lineReader) ([]string, error) {
	var lines []string
	for {
		line, err := l.next()
		switch err {
		case nil:
			lines = append(lines, string(line))
		case errTooLong:
			lines = append(lines, "long")
		default:
			return append(lines, string(line)), err
		}
	}
}
