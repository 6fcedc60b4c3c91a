//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// document is a Markdown file: text and measured blocks, in turns.
type document struct {
	name  string
	parts []part
}

// part is text, or a block.
type part struct {
	text  string
	block *block
}

// block is what a command has printed.
type block struct {
	command string
	only    []string // texts of the paragraphs that are shown; all if empty
	content string
}

var (
	begin = regexp.MustCompile(`^<!-- measured: (.*?)(?:; only: (.*))? -->$`)
	fence = "```"
	end   = "<!-- end -->"
)

// parse reads a document.
func parse(name, text string) (*document, error) {
	d := &document{name: name}
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := begin.FindStringSubmatch(strings.TrimRight(lines[i], "\n"))
		if m == nil {
			d.add(lines[i])
			continue
		}
		b := &block{command: m[1]}
		if m[2] != "" {
			b.only = strings.Split(m[2], "; ")
		}
		last := slices.Index(lines[i:], end+"\n")
		if last < 4 || lines[i+1] != fence+"\n" || lines[i+last-1] != fence+"\n" {
			return nil, fmt.Errorf("%s:%d: want lines of output between %s and %s, and then %s",
				name, i+1, fence, fence, end)
		}
		b.content = strings.Join(lines[i+2:i+last-1], "")
		d.parts = append(d.parts, part{block: b})
		i += last
	}
	return d, nil
}

// add adds a line of text.
func (d *document) add(line string) {
	if n := len(d.parts); n > 0 && d.parts[n-1].block == nil {
		d.parts[n-1].text += line
		return
	}
	d.parts = append(d.parts, part{text: line})
}

func (d *document) blocks() (all []*block) {
	for _, p := range d.parts {
		if p.block != nil {
			all = append(all, p.block)
		}
	}
	return all
}

// String is the file.
func (d *document) String() string {
	var b strings.Builder
	for _, p := range d.parts {
		b.WriteString(p.text)
		if p.block != nil {
			b.WriteString(p.block.String())
		}
	}
	return b.String()
}

func (b *block) String() string {
	only := ""
	if len(b.only) > 0 {
		only = "; only: " + strings.Join(b.only, "; ")
	}
	return fmt.Sprintf("<!-- measured: %s%s -->\n%s\n%s%s\n%s\n", b.command, only, fence, b.content, fence, end)
}

// choose returns the paragraphs of an output that the block shows.
func (b *block) choose(output string) string {
	if len(b.only) == 0 {
		return strings.TrimRight(output, "\n") + "\n"
	}
	var shown []string
	for i, paragraph := range strings.Split(strings.TrimRight(output, "\n"), "\n\n") {
		first, _, _ := strings.Cut(paragraph, "\n")
		if i == 0 || slices.ContainsFunc(b.only, func(text string) bool { return strings.Contains(first, text) }) {
			shown = append(shown, paragraph)
		}
	}
	if len(shown) < 2 {
		return ""
	}
	return strings.Join(shown, "\n\n") + "\n"
}
