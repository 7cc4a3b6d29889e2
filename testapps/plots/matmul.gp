# testapps/plots/matmul.gp: how much longer a launch takes when each GPU has a worker, by their number.
# data: GPUs, threads of one process, processes, and the same with memory pinned between launches; each
# against one worker alone.
load system("dirname '".ARG0."'").'/style.gp'
set xlabel 'GPUs, a worker on each'
set ylabel 'time of a launch, times one worker alone'
set logscale x 2
set yrange [0:*]
set offsets graph 0.05, graph 0.05, 0.5, 0
plot data using 1:4 with linespoints title 'pinning, threads of one process', \
     data using 1:5 with linespoints title 'pinning, a process for each', \
     data using 1:2 with linespoints title 'launches alone, threads', \
     data using 1:3 with linespoints title 'launches alone, processes'
