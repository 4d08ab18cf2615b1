package mcpserver

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// The files of skills are resources skill://NAME/PATH, as SEP-2640 has it.
const skillScheme = "skill://"

// skillTemplate is how clients make the URI of any file.
const skillTemplate = skillScheme + "{skill}/{+path}"

// skillManifest is the file that every skill has.
const skillManifest = "SKILL.md"

// skillURI is the URI of a file, or of a folder. Everything but unreserved
// characters is encoded, so that every client reads it in the same way and a
// file has one URI.
func skillURI(skill, file string) string {
	uri := append([]byte(skillScheme), escape(skill)...)
	if file != "" {
		uri = append(uri, '/')
		uri = append(uri, escape(file)...)
	}
	return string(uri)
}

func escape(text string) []byte {
	const hex = "0123456789ABCDEF"
	var out []byte
	for _, c := range []byte(text) {
		if c == '/' || c == '-' || c == '.' || c == '_' || c == '~' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return out
}

// parseSkillURI takes a URI apart. It decodes once and judges nothing: whether
// there is such a skill and file decides who has them.
func parseSkillURI(uri string) (skill, file string, ok bool) {
	rest, ok := strings.CutPrefix(uri, skillScheme)
	if !ok || strings.ContainsAny(rest, "?#") {
		return "", "", false
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		decoded, err := url.PathUnescape(p)
		if err != nil || strings.ContainsAny(decoded, "/\x00") {
			return "", "", false
		}
		parts[i] = decoded
	}
	return parts[0], strings.Join(parts[1:], "/"), parts[0] != ""
}

// mediaTypes are the media types of what skills are made of. The system's own
// table is not asked: it differs from machine to machine, and takes TypeScript
// for video.
var mediaTypes = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html", ".css": "text/css",
	".xml": "application/xml", ".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
	".py": "text/x-python", ".sh": "application/x-sh", ".js": "text/javascript", ".mjs": "text/javascript", ".ts": "text/typescript",
	".go": "text/x-go", ".rb": "text/x-ruby", ".sql": "application/sql", ".svg": "image/svg+xml",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".pdf": "application/pdf", ".zip": "application/zip", ".ttf": "font/ttf", ".woff2": "font/woff2",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// mediaType is a file's type by its name; "" when that does not tell.
func mediaType(file string) string { return mediaTypes[strings.ToLower(path.Ext(file))] }

// sniffType is a file's type when its bytes are known as well: what is called
// text must be that.
func sniffType(file string, data []byte) string {
	byName := mediaType(file)
	if byName == "" || strings.HasPrefix(byName, "text/") && !isText(data) {
		byName, _, _ = strings.Cut(http.DetectContentType(data), ";")
	}
	return byName
}

// isText reports whether bytes survive being sent as text.
func isText(data []byte) bool { return utf8.Valid(data) && !strings.ContainsRune(string(data), 0) }
