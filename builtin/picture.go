package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // decoders register themselves
	"image/jpeg"
	_ "image/png"
	"strings"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"zenmcp/core"
)

const (
	// maxPicture is the size in bytes up to which pictures are read.
	maxPicture = 32 << 20
	// maxPixels bounds what is decoded: a small file can hold a huge picture.
	maxPixels = 40 << 20
	// maxInline is the size of a picture in an answer, in bytes of base64
	// (decision 20).
	maxInline = 1 << 20
	// maxInlineSide is the length of the longer side of a picture that is made
	// smaller for an answer. Models do not look at more.
	maxInlineSide = 1568
)

// A picture is one that models take, by its bytes (pains: a JPEG named .png ends
// a conversation).
type picture struct {
	data          []byte
	media         string
	width, height int
}

// pictureOf looks at the bytes. The error says what they are instead.
func pictureOf(data []byte) (*picture, error) {
	p := &picture{data: data, media: core.ImageType(data)}
	if p.media == "" {
		return nil, errors.New(otherThanPicture(data))
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("looks like %s, but is damaged: %w", p.media, err)
	}
	p.width, p.height = config.Width, config.Height
	return p, nil
}

// otherThanPicture says what data is, and what to do with it.
func otherThanPicture(data []byte) string {
	head := data[:min(len(data), 512)]
	const want = "use a png, jpeg, gif or webp picture"
	switch {
	case len(data) == 0:
		return "is empty"
	case len(head) > 12 && string(head[4:8]) == "ftyp":
		return fmt.Sprintf("is a picture or film of the type %q (as HEIC and AVIF are), which models do not take; %s", strings.TrimSpace(string(head[8:12])), want)
	case bytes.Contains(head, []byte("<svg")):
		return "is image/svg+xml, which is text; use readFile"
	case bytes.IndexByte(head, 0) < 0:
		return "is text, not a picture; use readFile"
	}
	return "is not a picture that models take; " + want
}

// String describes the picture, as in "image/png, 640×480, 12.3 KB".
func (p *picture) String() string {
	return fmt.Sprintf("%s, %d×%d, %s", p.media, p.width, p.height, kilobytes(int64(len(p.data))))
}

// extension is the usual one for the type.
func (p *picture) extension() string {
	return map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}[p.media]
}

// inline is the picture for an answer: as it is when it is small enough, else
// smaller and as a JPEG; note says so then.
func (p *picture) inline() (block core.Image, note string, err error) {
	const most = maxInline / 4 * 3 // base64 makes four bytes of three
	if len(p.data) <= most {
		return core.Image{MIMEType: p.media, Data: p.data}, "", nil
	}
	if p.width*p.height > maxPixels {
		return block, "", fmt.Errorf("has %d×%d pixels, too many to make it smaller", p.width, p.height)
	}
	full, _, err := image.Decode(bytes.NewReader(p.data))
	if err != nil {
		return block, "", fmt.Errorf("is damaged: %w", err)
	}
	for side := min(maxInlineSide, max(p.width, p.height)); ; side = side * 3 / 4 {
		small := shrink(full, side)
		var out bytes.Buffer
		if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: 85}); err != nil {
			return block, "", err
		}
		if out.Len() <= most {
			size := small.Bounds()
			return core.Image{MIMEType: "image/jpeg", Data: out.Bytes()},
				fmt.Sprintf("shown as image/jpeg, %d×%d", size.Dx(), size.Dy()), nil
		}
	}
}

// shrink draws a picture so that its longer side is at most side, on white where
// it is transparent.
func shrink(full image.Image, side int) image.Image {
	from := full.Bounds()
	longer := max(from.Dx(), from.Dy(), side)
	to := image.Rect(0, 0, max(1, from.Dx()*side/longer), max(1, from.Dy()*side/longer))
	small := image.NewRGBA(to)
	draw.Draw(small, to, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(small, to, full, from, draw.Over, nil)
	return small
}
