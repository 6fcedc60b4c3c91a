module github.com/rawlane/rawlane

go 1.26
