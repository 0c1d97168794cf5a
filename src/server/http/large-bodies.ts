/** How long one body keeps others from being planned, in milliseconds: a call may wait much longer for an API or a person. */
const TURN_MS = 5000;

/** The room that one large body holds. */
export interface Held {
  /** Holds it until this work has ended as well; takes it again where all earlier work has ended. */
  until(work: Promise<unknown>): void;
  /** Its call is planned, and takes little more memory from now on: the next body may be parsed. */
  planned(): void;
}

/** Lets large bodies be parsed and planned in turns, and only so many bytes of them be worked on. */
export interface LargeBodies {
  /**
   * Waits for room and holds it until `work` and all that was added has ended. Undefined where no room came free within
   * `mostMs` milliseconds, or `work` ended before.
   */
  enter(caller: string, bytes: number, mostMs: number, work: Promise<unknown>): Promise<Held | undefined>;
}

/** A body that waits for room. */
interface Waiting {
  readonly bytes: number;
  readonly begin: (held: Held) => void;
}

/**
 * Shares `mostBytes` among large bodies; one that is larger enters alone. A caller has at most half of it, unless it is
 * for a single body. Callers take turns, and the bodies of each enter in the order of their arrival.
 */
export function largeBodies(mostBytes: number): LargeBodies {
  /** The caller whose turn comes first stands first. */
  const waitingOf = new Map<string, Set<Waiting>>();
  const takenBy = new Map<string, number>();
  let taken = 0;
  let isPlanning = false;
  const take = (caller: string, bytes: number): void => {
    taken += bytes;
    const left = (takenBy.get(caller) ?? 0) + bytes;
    if (left === 0) takenBy.delete(caller);
    else takenBy.set(caller, left);
  };
  const leaveQueue = (caller: string, body: Waiting): void => {
    const waiting = waitingOf.get(caller);
    waiting?.delete(body);
    if (waiting?.size === 0) waitingOf.delete(caller);
  };
  const admit = (): void => {
    if (isPlanning) return;
    for (const [caller, waiting] of waitingOf) {
      const [next] = waiting;
      const own = takenBy.get(caller) ?? 0;
      if (next === undefined || (own > 0 && own + next.bytes > mostBytes / 2)) continue;
      // Nobody smaller goes first, or a large one would wait for ever.
      if (taken > 0 && taken + next.bytes > mostBytes) return;
      waitingOf.delete(caller);
      waitingOf.set(caller, waiting);
      leaveQueue(caller, next);
      isPlanning = true;
      next.begin(hold(caller, next.bytes));
      return;
    }
  };
  const hold = (caller: string, bytes: number): Held => {
    let works = 0;
    let isMine = true;
    const planned = (): void => {
      clearTimeout(turn);
      if (!isMine) return;
      isMine = false;
      isPlanning = false;
      admit();
    };
    const turn = setTimeout(planned, TURN_MS);
    const end = (): void => {
      works -= 1;
      if (works > 0) return;
      take(caller, -bytes);
      planned();
      admit();
    };
    return {
      planned,
      until(work) {
        if (works === 0) take(caller, bytes);
        works += 1;
        work.then(end, end);
      },
    };
  };
  return {
    enter(caller, bytes, mostMs, work) {
      return new Promise((resolve) => {
        const body: Waiting = {
          bytes,
          begin(held) {
            clearTimeout(late);
            held.until(work);
            resolve(held);
          },
        };
        const giveUp = (): void => {
          clearTimeout(late);
          leaveQueue(caller, body);
          resolve(undefined);
          admit();
        };
        const late = setTimeout(giveUp, mostMs);
        work.then(giveUp, giveUp);
        waitingOf.set(caller, (waitingOf.get(caller) ?? new Set()).add(body));
        admit();
      });
    },
  };
}
