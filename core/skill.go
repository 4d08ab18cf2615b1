package core

import (
	"context"
	"encoding/json"
	"time"
)

// A Skill is a folder of instructions and files that one scope may read. Like a
// [Tool] it is a value, and each edge renders it in its own ways: MCP as
// resources, as a prompt and as an entry of the skills extension.
type Skill struct {
	Name        string // of the folder: what permissions.skills names
	Description string
	Files       SkillFiles
}

// SkillFiles reads a skill's folder as it is at that moment. Paths are relative
// to the folder, with slashes.
type SkillFiles interface {
	// Text is all that a model needs to begin: what load_skill answers.
	Text(ctx context.Context) (string, error)
	// List lists every file of the skill, sorted by path in byte order.
	List(ctx context.Context) ([]SkillFile, error)
	// Read returns the bytes of one file. Whatever List does not give does not
	// exist for it, in every spelling: the error is fs.ErrNotExist.
	Read(ctx context.Context, path string) ([]byte, error)
	// Describe describes the skill to a host that will verify every byte of it.
	// The error says why that cannot be done for this skill, which may still be
	// good enough to be read.
	Describe(ctx context.Context) (SkillManifest, error)
}

// A SkillFile is one file of a skill.
type SkillFile struct {
	Path     string
	Size     int64 // in bytes
	Modified time.Time
	Digest   string // "sha256:" and the hexadecimal hash of the bytes; only Describe fills it in
}

// A SkillManifest is a skill as hosts compare it with what they read.
type SkillManifest struct {
	Frontmatter json.RawMessage // of SKILL.md, as a JSON object
	Files       []SkillFile     // all of them, with digests
}

// A Skilled offer has skills beside tools.
type Skilled interface {
	// Skills gives those of the offer's skills that passed the filter, in order.
	// As [Offer.Instantiate] it must be cheap.
	Skills(permitted []Capability) []Skill
}
