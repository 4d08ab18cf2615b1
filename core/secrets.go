package core

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secretName is the name of a value that nobody else should know. It is strict: by it
// a file is said to hold a secret, and values of the environment are masked wherever
// they stand, which must not happen to those of PATH, AUTHOR or MAX_TOKENS. Where only
// the look of a line tells, as in an excerpt of a broken file, configs guesses wider.
var secretName = Regexp(`(?i)(key|token|secret|passw(or)?d|passphrase|authorization|credentials?)$`)

// IsSecret reports whether what has this name, as a key, a variable or a flag, is
// something that nobody else should know.
func IsSecret(name string) bool { return secretName().MatchString(name) }

// Masker takes secrets out of a text: the words of these values and what [SecretsOf]
// finds in them, and the same of the environment, which ${NAME} may have put anywhere,
// but of that only variables that [IsSecret] knows by their names, and URLs. Words under
// eight bytes stay, and so do paths of files that exist: those are no secrets.
func Masker(values ...string) *strings.Replacer {
	values = slices.Concat(values, SecretsOf(values...))
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if IsSecret(name) {
			values = append(values, value)
		}
		values = append(values, secretsOfURL(value)...)
	}
	var words []string
	for _, value := range values {
		if filepath.IsAbs(value) {
			if _, err := os.Lstat(value); err == nil {
				continue
			}
		}
		for word := range strings.FieldsSeq(value) { // of "Bearer KEY", for one
			if len(word) >= 8 {
				words = append(words, word)
			}
		}
	}
	// The longer first: a shorter one may be the beginning of it.
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(words))
	for _, word := range words {
		pairs = append(pairs, word, "***")
	}
	return strings.NewReplacer(pairs...)
}

// SecretsOf are what of a command's arguments, or of a URL, nobody else should know:
// what stands behind a flag for it, or behind its name as in NAME=value and in a
// header, and what a URL signs in with.
func SecretsOf(args ...string) []string {
	var values []string
	for i, arg := range args {
		if IsSecret(arg) && strings.HasPrefix(arg, "-") && i+1 < len(args) {
			values = append(values, args[i+1])
		}
		for rest := arg; ; {
			at := strings.IndexAny(rest, "=:")
			if at < 0 {
				break
			}
			name := rest[:at]
			if rest = rest[at+1:]; IsSecret(name) {
				values = append(values, rest)
			}
		}
		values = append(values, secretsOfURL(arg)...)
	}
	return values
}

// secretsOfURL are the password in a URL, or the user if there is none, and what
// stands behind the name of a secret in its query: each as it is written and as it is
// meant.
func secretsOfURL(text string) []string {
	var values []string
	add := func(value string, unescape func(string) (string, error)) {
		values = append(values, value)
		if meant, err := unescape(value); err == nil && meant != value {
			values = append(values, meant)
		}
	}
	_, text, _ = strings.Cut(text, "://")
	text, query, _ := strings.Cut(text, "?")
	authority, _, _ := strings.Cut(text, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, ok := strings.Cut(authority[:at], ":")
		if !ok {
			password = user // a token, for some services
		}
		add(password, url.PathUnescape)
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); IsSecret(name) {
			add(value, url.QueryUnescape)
		}
	}
	return values
}
