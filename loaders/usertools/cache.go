package usertools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zenmcp/configs"
)

// A cache is what the modules of one folder declared when they were run last. It
// is a file below the state directory, one for each folder. Without it a start
// would run Node before the first answer.
type cache struct {
	// Digest is that of the folder's files: the modules, and what they may import
	// from it. What package managers install counts for nothing.
	Digest string `json:"digest"`
	Node   string `json:"node"` // the program; once it is gone, the tools are left out
	// Modules are the declarations as JSON by the name of the file; null is a
	// module without a tool. What failed is not kept.
	Modules map[string]*string `json:"modules"`
}

func (c cache) usable() bool {
	info, err := os.Stat(c.Node)
	return err == nil && info.Mode().IsRegular()
}

// cacheFile is where the cache of a folder is; "" when nothing may be kept.
func (s *Source) cacheFile(dir string) string {
	if s.places.State == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(s.places.State, "user-tools", hex.EncodeToString(sum[:8])+".json")
}

func readCache(file string) (c cache) {
	if file == "" {
		return c
	}
	text, err := configs.ReadText(file)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return cache{} // it is made anew
	}
	return c
}

// keep writes the cache of a folder, if it can be found again.
func (s *Source) keep(ctx context.Context, file string, c cache) {
	if s.Inspect || file == "" || c.Digest == "" {
		return
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = configs.WriteFile(ctx, file, text, true)
	}
	if err != nil {
		s.log.Warn("what modules declare cannot be kept, so they run at every start", "file", file, "error", err)
	}
}

// maxDigested is how many files of a folder are read to notice that one changes.
const maxDigested = 1000

// folderDigest is a digest of the modules and of the scripts and JSON files in their
// folder and below it; "" when one cannot be read.
func folderDigest(dir string, modules []string) string {
	files := slices.Clone(modules)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case len(files) >= maxDigested:
			return fs.SkipAll
		case e.IsDir() && path != dir && configs.IsJunk(e.Name()):
			return fs.SkipDir
		case !e.IsDir() && slices.Contains([]string{".js", ".mjs", ".cjs", ".json"}, strings.ToLower(filepath.Ext(path))):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return ""
	}
	slices.Sort(files)
	hash := sha256.New()
	for _, file := range slices.Compact(files) {
		text, err := configs.ReadText(file)
		if err != nil {
			return ""
		}
		fmt.Fprintf(hash, "%q %d\n", file, len(text))
		hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
