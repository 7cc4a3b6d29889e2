# testapps/plots/style.gp: what all pictures share. testapps/tour calls gnuplot with `data` (a table of
# numbers), `output`, `heading` (what, where, when) and `below` (the commands, a line each); the name of the
# output says which terminal.
svg = strlen(output) > 4 && output[strlen(output) - 3:] eq '.svg'
if (svg) {
	set terminal svg size 900,560 dynamic enhanced font 'DejaVu Sans,14' background '#ffffff'
} else {
	set terminal pngcairo size 1350,840 enhanced font 'DejaVu Sans,15' background '#ffffff'
}
set output output
set title heading noenhanced
lines = 1
do for [i = 1:strlen(below)] { if (below[i:i] eq "\n") { lines = lines + 1 } }
set label 1 below at screen 0.99,0.02 * lines right font ',10' textcolor rgb '#666666' noenhanced
set bmargin 4 + lines
set border 3 linecolor rgb '#444444'
set tics nomirror
set grid ytics linecolor rgb '#dddddd' linetype 1
set key top left reverse Left samplen 2
# Told apart by those who see few colours, too (Okabe and Ito's palette).
set linetype 1 linecolor rgb '#0072b2' linewidth 2.5 pointtype 7 pointsize 0.9
set linetype 2 linecolor rgb '#d55e00' linewidth 2.5 pointtype 5 pointsize 0.9
set linetype 3 linecolor rgb '#009e73' linewidth 2.5 pointtype 9 pointsize 1.1
set linetype 4 linecolor rgb '#cc79a7' linewidth 2.5 pointtype 11 pointsize 1.1
set linetype 5 linecolor rgb '#e69f00' linewidth 2.5 pointtype 13 pointsize 1.2
set linetype 6 linecolor rgb '#56b4e9' linewidth 2.5 pointtype 6 pointsize 0.9
