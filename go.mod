module github.com/rawlane/rawlane

go 1.26.0

require (
	github.com/google/gopacket v1.1.19 // indirect
	github.com/mdlayher/ethernet v0.0.0-20220221185849-529eae5b6118 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
