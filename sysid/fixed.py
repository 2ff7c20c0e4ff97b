"""Steps of fixed length for lanes of one system, of floats or of complex numbers."""

from .adaptive import BLEW_UP, DONE


def solve_block(advance, times, n_steps, start, parameters, limit, states, status, reached, steps, x, moved, p, clock):
    """Solve a block of lanes: states (lane, n, dim), left alone where not reached; status, index of the time reached.

    times: (n,). n_steps: of each interval of ``times``, all of one length. start: (lane, dim). parameters: (lane,
    n_parameters). x, moved (dim, lane) and p (n_parameters, lane): to work in; clock: (3, lane).
    """
    lanes, dim = start.shape
    for lane in range(lanes):
        status[lane], reached[lane], steps[lane] = DONE, 0, 0
        for j in range(p.shape[0]):
            p[j, lane] = parameters[lane, j]
        for d in range(dim):
            x[d, lane] = start[lane, d]
            states[lane, 0, d] = start[lane, d]
            if not abs(start[lane, d]) <= limit:
                status[lane] = BLEW_UP
    now, step = clock[0], clock[1]
    for i in range(times.size - 1):
        h = (times[i + 1] - times[i]) / n_steps[i]
        going = False
        for lane in range(lanes):
            step[lane] = h
            going = going or status[lane] == DONE
        if not going:
            return
        for s in range(n_steps[i]):
            for lane in range(lanes):
                now[lane] = times[i] + s * h
                steps[lane] += status[lane] == DONE
            advance(now, step, x, p, moved, clock[2])
            for d in range(dim):
                for lane in range(lanes):
                    x[d, lane] = moved[d, lane]
                    if not abs(moved[d, lane]) <= limit:
                        status[lane] = BLEW_UP
        for lane in range(lanes):
            if status[lane] == DONE:
                reached[lane] = i + 1
                for d in range(dim):
                    states[lane, i + 1, d] = x[d, lane]
