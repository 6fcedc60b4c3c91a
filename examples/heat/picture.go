package main

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
)

// writePicture writes a picture of the plate, a pixel a cell.
func writePicture(name string, plate []float64, cells int) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(file, paint(plate, cells)), file.Close())
}

// paint paints cold cells blue, warm ones red, and those of the edges' temperature white.
func paint(plate []float64, cells int) *image.Paletted {
	var palette color.Palette
	for k := range 255 {
		fading := uint8(255 - 2*max(127-k, k-127)) // 1 at both ends, 255 in the middle
		c := color.RGBA{R: 255, G: fading, B: fading, A: 255}
		if k < 127 {
			c = color.RGBA{R: fading, G: fading, B: 255, A: 255}
		}
		palette = append(palette, c)
	}
	var hottest float64
	for _, t := range plate {
		hottest = max(hottest, math.Abs(t))
	}
	picture := image.NewPaletted(image.Rect(0, 0, cells, cells), palette)
	for k, t := range plate {
		if picture.Pix[k] = 127; hottest > 0 {
			picture.Pix[k] = uint8(math.Round(127 + 127*t/hottest))
		}
	}
	return picture
}
