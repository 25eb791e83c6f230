// Command range-vectors prints what the two Go modules that catalogs are written for
// make of ranges: which of the versions each matches, or that it is refused.
//
//	go mod init range-vectors
//	go get github.com/blang/semver/v4@v4.0.0 github.com/Masterminds/semver/v3@v3.4.0
//	go run range-vectors.go > range-vectors.json
package main

import (
	"encoding/json"
	"os"

	masterminds "github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
)

var versions = []string{
	"0.0.0", "0.0.4", "0.3.0", "0.3.7", "1.0.0-alpha", "1.0.0-rc.2", "1.0.0", "1.0.5", "1.4.0",
	"1.4.2", "1.4.3-0", "1.5.0", "2.0.0-beta.1", "2.0.0", "2.1.9", "3.0.0+build.7", "11.2.3",
}

var ranges = []string{
	"", " ", "1.4.2", "=1.4.2", "==1.4.2", "!=1.4.2", "!1.4.2", ">1.4.2", ">=1.4.2", "<1.4.2",
	"<=1.4.2", "=>1.4.2", "=<1.4.2", "1", "1.4", "v1.4.2", "1.x", "1.4.x", "1.x.x", "x", "*",
	">1.x", ">=1.4.x", "<1.x", "<=1.x", "!=1.x", "!1.4.x", ">1", ">1.4", "<=1", "<=1.4", "!=1",
	"^1.4.0", "^0.3.0", "^0.0.4", "^0", "^1.x", "~1.4.0", "~1.4", "~1", "~>1.4.0", "~1.x",
	">=1.0.0 <2.0.0", ">=1.0.0, <2.0.0", ">=1.0.0,<2.0.0", ">= 1.0.0 < 2.0.0", ">=1.0.0 , <2.0.0",
	"1.0.0 - 2.0.0", "1.0 - 2.x", "1.0.0-2.0.0", "<1.0.0 || >=2.0.0", "<1.0.0||>=2.0.0",
	"|| 1.0.0", "1.0.0 ||", ">=1.0.0-0", "<2.0.0-0", ">=1.0.0-rc.1 <1.4.3",
	"~1.0.0-alpha", "^2.0.0-0", "1.0.0-rc.2", "3.0.0", "3.0.0+build.7", "3.0.0+other", "01.4.2",
	"1.4.2.0", "1.4.2-", ">1.4.2 !1.5.0", "and", "&& 1.0.0", "1.0.0 and 2.0.0", "> =1.0.0",
}

type vector struct {
	Range   string   `json:"range"`
	Match   []string `json:"match,omitempty"`
	Refused bool     `json:"error,omitempty"`
}

func vectors(read func(string) (func(string) bool, error)) []vector {
	var all []vector
	for _, text := range ranges {
		matches, err := read(text)
		one := vector{Range: text, Refused: err != nil}
		for _, version := range versions {
			if err == nil && matches(version) {
				one.Match = append(one.Match, version)
			}
		}
		all = append(all, one)
	}
	return all
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	err := out.Encode(map[string]any{
		"versions": versions,
		"blang": vectors(func(text string) (func(string) bool, error) {
			matches, err := blang.ParseRange(text)
			return func(version string) bool { return matches(blang.MustParse(version)) }, err
		}),
		"masterminds": vectors(func(text string) (func(string) bool, error) {
			constraint, err := masterminds.NewConstraint(text)
			return func(version string) bool { return constraint.Check(masterminds.MustParse(version)) }, err
		}),
	})
	if err != nil {
		panic(err)
	}
}
