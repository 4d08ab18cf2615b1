package builtin

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name in bytes that a download gives a file. File systems
// take 255, in bytes or in UTF-16, and less where they encrypt names.
const maxName = 140

// downloadName is the name for the file of a response (decision 14): what its
// Content-Disposition says, else the last part of the URL that answered, else one
// made of the time (contract §2).
func downloadName(resp *http.Response) string {
	name := safeName(dispositionName(resp.Header.Get("Content-Disposition")))
	if name == "" {
		escaped := resp.Request.URL.EscapedPath()
		last := escaped[strings.LastIndexByte(escaped, '/')+1:]
		if decoded, err := url.PathUnescape(last); err == nil {
			last = decoded
		}
		name = safeName(last)
	}
	if name == "" {
		name = fmt.Sprintf("download_%d", time.Now().UnixMilli())
	}
	return name
}

// dispositionName is the file name in a Content-Disposition header, filename*
// before filename (RFC 6266), "" if there is none.
func dispositionName(header string) string {
	_, params, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	name := params["filename"]
	// Not allowed by RFC 6266, and sent by some servers all the same.
	if decoded, err := new(mime.WordDecoder).DecodeHeader(name); err == nil {
		name = decoded
	}
	return name
}

// safeName makes a name that a server chose one that is safe here and on every
// other system: its last part if it is a path, without what Windows or terminals
// read in their own way. "" if nothing is left.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	ext := filepath.Ext(name)
	if len(ext) > 20 {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if surplus := len(name) - maxName; surplus > 0 {
		stem = stem[:len(stem)-surplus]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1]
		}
	}
	// Windows drops blanks and dots at the end. Here that also leaves nothing
	// of names that are made of dots.
	name = strings.TrimRight(strings.TrimLeft(stem+ext, " "), " .")
	if device(name) {
		name = "_" + name
	}
	return name
}

// device reports whether Windows takes the name for a device's, as it does with
// any extension.
func device(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, isCOM := strings.CutPrefix(stem, "COM")
	if !isCOM {
		var isLPT bool
		if port, isLPT = strings.CutPrefix(stem, "LPT"); !isLPT {
			return false
		}
	}
	return utf8.RuneCountInString(port) == 1 && strings.ContainsAny(port, "0123456789¹²³")
}
