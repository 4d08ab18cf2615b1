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

// Masker takes secrets out of a text: the words of these values, and of the variables
// of the environment that [IsSecret] knows by their names, which ${NAME} may have put
// anywhere. Words under eight bytes stay, and so do paths of files that exist: those
// are no secrets.
func Masker(values ...string) *strings.Replacer {
	var words []string
	add := func(value string) {
		if filepath.IsAbs(value) {
			if _, err := os.Lstat(value); err == nil {
				return
			}
		}
		for word := range strings.FieldsSeq(value) { // of "Bearer KEY", for one
			if len(word) >= 8 {
				words = append(words, word)
			}
		}
	}
	for _, value := range values {
		add(value)
	}
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); IsSecret(name) {
			add(value)
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
// what stands behind a flag for it, or behind its name, and the password of a URL.
func SecretsOf(args ...string) []string {
	var values []string
	for i, arg := range args {
		name, value, one := strings.Cut(arg, "=")
		switch {
		case IsSecret(name) && one:
			values = append(values, value)
		case IsSecret(name) && strings.HasPrefix(name, "-") && i+1 < len(args):
			values = append(values, args[i+1])
		}
		u, err := url.Parse(arg)
		if err != nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			values = append(values, password)
		}
		for name, all := range u.Query() {
			if IsSecret(name) {
				values = append(values, all...)
			}
		}
	}
	return values
}
