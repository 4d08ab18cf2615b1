package doctor

import (
	"net/url"
	"os"
	"slices"
	"strings"

	"zenmcp/configs"
)

// mask takes the words of values out of a text, and the keys that the environment
// holds, which ${NAME} has put anywhere. Words under eight bytes stay: those are no
// secrets.
func mask(text string, values []string) string {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); configs.IsSecret(name) {
			values = append(values, value)
		}
	}
	var words []string
	for _, value := range values {
		words = append(words, strings.Fields(value)...) // of "Bearer KEY", for one
	}
	// The longer first: a shorter one may be a part of it.
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	for _, word := range words {
		if len(word) >= 8 {
			text = strings.ReplaceAll(text, word, "***")
		}
	}
	return text
}

// secrets are what of a command's arguments nobody else should know: what stands
// behind a flag for it, or behind its name, and the password of a URL.
func secrets(args []string) []string {
	var values []string
	for i, arg := range args {
		name, value, one := strings.Cut(arg, "=")
		switch {
		case configs.IsSecret(name) && one:
			values = append(values, value)
		case configs.IsSecret(name) && strings.HasPrefix(name, "-") && i+1 < len(args):
			values = append(values, args[i+1])
		}
		if u, err := url.Parse(arg); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				values = append(values, password)
			}
		}
	}
	return values
}
