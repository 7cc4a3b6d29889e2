# testapps/plots/nbody.gp: one GPU, one or several processes. data: a block of bars: place, thousand million
# interactions a second, the process' number from 1 on or 0 for all together, the rate in words, and what else
# is to be said of it; and a block of groups of bars: place, name. `processes`: the most in a group.
load system("dirname '".ARG0."'").'/style.gp'
set ylabel '10^9 interactions a second'
set yrange [0:*]
set autoscale xfix
set offsets 1, 1, graph 0.1, 0
set style fill solid 0.9 noborder
set boxwidth 0.9
set xtics noenhanced scale 0
set key outside top center horizontal
color(process) = process < 1 ? 5 : int(process) % 2 ? 1 : 6
plot data index 0 using 1:2:(0.9):(color($3)) with boxes linecolor variable notitle, \
     '' index 0 using 1:2:4 with labels offset 0,0.7 font ',11' notitle, \
     '' index 0 using 1:(0):5:(color($3) == 1 ? 0xffffff : 0) with labels rotate by 90 left \
     offset 0,0.7 font ',13' textcolor rgb variable notitle, \
     '' index 1 using 1:(0):xtic(2) with dots linecolor rgb '#ffffff' notitle, \
     for [p = 1:processes] NaN with boxes linetype color(p) title 'process '.(p - 1), \
     NaN with boxes linetype color(0) title 'together, first step to last'
