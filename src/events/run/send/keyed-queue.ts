/** Runs tasks side by side, but those of one key one after another, in the order they came. */
export interface KeyedQueue<Task> {
  /** Takes a task in. */
  add(key: string, task: Task): void;
  /**
   * Resolves once few of the tasks that wait could begin at once (enough for a moment), and at most `few` wait in all; gives
   * how many do.
   * Rejects with the first error of any task.
   */
  nearlyEmpty(few: number): Promise<number>;
  /** Resolves once every task has ended. Rejects with the first error of any task. */
  ended(): Promise<void>;
}

/**
 * Makes a queue that performs at most `concurrency` tasks at once. After a task's error no other task is begun.
 * One caller at a time may wait for it.
 */
export function keyedQueue<Task>(concurrency: number, perform: (task: Task) => Promise<void>): KeyedQueue<Task> {
  interface Entry {
    readonly key: string;
    readonly task: Task;
  }
  const ready: Entry[] = [];
  /** The keys with a task ready or under way, each with the tasks behind it. */
  const behind = new Map<string, Entry[]>();
  let running = 0;
  let held = 0;
  let failure: { readonly thrown: unknown } | undefined;
  let awaited: { readonly isReached: () => boolean; readonly wake: () => void } | undefined;

  function begin(): void {
    while (running < concurrency) {
      const entry = ready.shift();
      if (entry === undefined) return;
      running += 1;
      void run(entry);
    }
  }

  async function run({ key, task }: Entry): Promise<void> {
    try {
      if (failure === undefined) await perform(task);
    } catch (thrown) {
      failure ??= { thrown };
    }
    running -= 1;
    held -= 1;
    const follower = behind.get(key)?.shift();
    if (follower === undefined) behind.delete(key);
    else ready.push(follower);
    begin();
    if (awaited?.isReached()) awaited.wake();
  }

  async function until(isReached: () => boolean): Promise<void> {
    if (!isReached()) {
      await new Promise<void>((wake) => {
        awaited = { isReached, wake };
      });
      awaited = undefined;
    }
    if (failure !== undefined) throw failure.thrown;
  }

  return {
    add(key, task) {
      held += 1;
      const line = behind.get(key);
      if (line !== undefined) {
        line.push({ key, task });
        return;
      }
      behind.set(key, []);
      ready.push({ key, task });
      begin();
    },
    async nearlyEmpty(few) {
      await until(() => ready.length <= 2 * concurrency && held - running <= few);
      return held - running;
    },
    ended: () => until(() => held === 0),
  };
}
