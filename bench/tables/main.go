//go:build linux

// Command tables measures what the documents show: it runs the commands that stand over their
// tables, and puts the output in place of the old. A measured block of a Markdown file is
//
//	<!-- measured: go run ./bench/latency -->
//	```
//	...
//	```
//	<!-- end -->
//
// With "only: TEXT; TEXT" behind the command it holds those paragraphs of the output whose first
// lines have one of the texts, and the first, which describes the machine. A command runs once,
// however many blocks show it.
//
//	go run ./bench/tables             measures all in half an hour: on a quiet machine
//	go run ./bench/tables -only rate  measures the commands that match
//	go run ./bench/tables -check      measures nothing, compares the rows with the commands
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/outfile"
)

func main() {
	ctx, stop := harness.UntilEnded()
	err := run(ctx)
	stop()
	harness.Exit("tables", err)
}

func run(ctx context.Context) error {
	check := flag.Bool("check", false, "measure nothing; exit with 1 if a table has other rows than its command")
	only := flag.String("only", "", "measure the commands that match this regular expression")
	flag.Parse()
	if args := flag.Args(); len(args) > 0 {
		return harness.Misuse("unexpected argument %q (-only %[1]q measures the commands that match)", args[0])
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return harness.Misuse("-only %q: %w", *only, err)
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return fmt.Errorf("run this in the repository's folder: %w", err)
	}
	documents, err := readAll(".")
	if err != nil {
		return err
	}
	if *check {
		return checkAll(ctx, documents)
	}
	if !matches(documents, match) {
		return harness.Misuse("-only %q: matches no command", *only)
	}
	return measureAll(ctx, documents, match)
}

// readAll reads the Markdown files below a folder that have measured blocks.
func readAll(root string) (documents []*document, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		doc, err := parse(name, string(text))
		if err == nil && len(doc.blocks()) > 0 {
			documents = append(documents, doc)
		}
		return err
	})
	if err == nil && len(documents) == 0 {
		err = errors.New("no document has a measured block")
	}
	return documents, err
}

// matches reports whether there is a command to measure.
func matches(documents []*document, match *regexp.Regexp) bool {
	return slices.ContainsFunc(documents, func(d *document) bool {
		return slices.ContainsFunc(d.blocks(), func(b *block) bool { return match.MatchString(b.command) })
	})
}

// measureAll runs each command once, until ctx ends, and writes the documents that show it. What a
// benchmark has measured is shown, too, if it does not meet its limits; what a command has printed
// that fails otherwise is not.
func measureAll(ctx context.Context, documents []*document, match *regexp.Regexp) error {
	outputs, ran := make(map[string]string), make(map[string]bool)
	var errs []error
	for _, doc := range documents {
		for _, b := range doc.blocks() {
			if ran[b.command] || !match.MatchString(b.command) || ctx.Err() != nil {
				continue
			}
			ran[b.command] = true
			fmt.Fprintf(os.Stderr, "%s\n", b.command)
			out, err := output(ctx, b.command)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", b.command, err))
			}
			if err == nil || missed.MatchString(out) {
				outputs[b.command] = out
			}
		}
		if err := doc.write(outputs); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// write puts outputs into the blocks of their commands; a block that would show nothing of its own
// stays as it is. The file is read again: it may have been edited while the commands ran.
func (d *document) write(outputs map[string]string) error {
	text, err := os.ReadFile(d.name)
	if err != nil {
		return err
	}
	if d, err = parse(d.name, string(text)); err != nil {
		return err
	}
	var errs []error
	for _, b := range d.blocks() {
		out, ok := outputs[b.command]
		if !ok {
			continue
		}
		shown := b.choose(out)
		if strings.TrimSpace(shown) == "" {
			errs = append(errs, fmt.Errorf("%s: %s printed nothing with %q", d.name, b.command, b.only))
			continue
		}
		b.content = shown
	}
	if after := d.String(); after != string(text) {
		errs = append(errs, outfile.Replace(d.name, []byte(after)))
	}
	return errors.Join(errs...)
}
