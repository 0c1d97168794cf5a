/** The room that one large body holds. */
export interface Held {
  /** Holds it until this work has ended as well. */
  until(work: Promise<unknown>): void;
  /** Its call is planned, and takes little more memory from now on: the next body may be parsed. */
  planned(): void;
}

/** Lets one large body be parsed and planned at a time, and only so many bytes of them be worked on. */
export interface LargeBodies {
  /**
   * Waits for room, in the order of arrival, and holds it until `work` and all that was added has ended. Undefined
   * where no room came free within `mostMs` milliseconds.
   */
  enter(bytes: number, mostMs: number, work: Promise<unknown>): Promise<Held | undefined>;
}

/** A body that waits for room. */
interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
}

/** Shares `mostBytes` among large bodies; one that is larger enters alone. */
export function largeBodies(mostBytes: number): LargeBodies {
  const queue = new Set<Waiting>();
  let taken = 0;
  let isPlanning = false;
  const admit = (): void => {
    const [next] = queue;
    if (next === undefined || isPlanning || (taken > 0 && taken + next.bytes > mostBytes)) return;
    queue.delete(next);
    taken += next.bytes;
    isPlanning = true;
    next.begin();
  };
  const hold = (bytes: number): Held => {
    let works = 0;
    let isMine = true;
    const planned = (): void => {
      if (!isMine) return;
      isMine = false;
      isPlanning = false;
      admit();
    };
    const end = (): void => {
      works -= 1;
      if (works > 0) return;
      taken -= bytes;
      planned();
      admit();
    };
    return {
      planned,
      until(work) {
        works += 1;
        work.then(end, end);
      },
    };
  };
  return {
    async enter(bytes, mostMs, work) {
      const hasRoom = await new Promise<boolean>((resolve) => {
        const waiting: Waiting = {
          bytes,
          begin: () => {
            clearTimeout(late);
            resolve(true);
          },
        };
        const late = setTimeout(() => {
          queue.delete(waiting);
          resolve(false);
        }, mostMs);
        queue.add(waiting);
        admit();
      });
      if (!hasRoom) return undefined;
      const held = hold(bytes);
      held.until(work);
      return held;
    },
  };
}
