package proc

import "golang.org/x/sys/windows"

// oemCodePage is CP_OEMCP: the code page that consoles have unless told otherwise.
const oemCodePage = 1

func decodeConsole(output []byte) (string, bool) {
	if len(output) == 0 || len(output) > 1<<30 {
		return "", false
	}
	wide := make([]uint16, len(output)) // a byte gives one unit at most
	n, err := windows.MultiByteToWideChar(oemCodePage, 0, &output[0], int32(len(output)), &wide[0], int32(len(wide)))
	if err != nil || n <= 0 {
		return "", false
	}
	return windows.UTF16ToString(wide[:n]), true
}
