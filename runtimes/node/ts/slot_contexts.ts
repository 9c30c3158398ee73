// Where Node.js keeps no frame with a continuation: one slot, which always holds the store of what runs now. An
// async hook refills it whenever another continuation begins, which is what makes this way the slow one.

import { AsyncLocalStorage, createHook } from 'async_hooks';
import type { AsyncHook } from 'async_hooks';
import type { Binding } from './binding';

// More than any program nests; if it is reached, the ends of some have not been told.
const MAX_NESTED = 1000;

type AnyStorage = AsyncLocalStorage<unknown>;

export class SlotContexts {
  readonly #native: Binding;
  readonly #storages: AnyStorage[] = [];
  #hook: AsyncHook | undefined;
  #current: unknown = undefined;
  // The ids of the continuations that have begun and not ended, each with what the slot held before it.
  #nested: unknown[] = [];

  constructor(native: Binding) {
    this.#native = native;
  }

  /** Follows a storage from now on. The first that has a store decides; `first` puts this one before the others. */
  follow(storage: AnyStorage, first = false): void {
    if (this.#storages.includes(storage)) return;
    if (first) this.#storages.unshift(storage);
    else this.#storages.push(storage);
    this.#watch(storage);
    this.#startHook();
    this.#set(this.#active());
  }

  forget(storage: AnyStorage): void {
    const index = this.#storages.indexOf(storage);
    if (index >= 0) this.#storages.splice(index, 1);
    this.#set(this.#active());
  }

  #active(): unknown {
    for (const storage of this.#storages) {
      const store = storage.getStore();
      if (store !== undefined) return store;
    }
    return undefined;
  }

  #set(store: unknown): void {
    if (store === this.#current) return;
    this.#current = store;
    this.#native.setSlot(store);
  }

  #startHook(): void {
    if (this.#hook !== undefined) return;
    this.#hook = createHook({
      before: (id) => {
        if (this.#nested.length >= 2 * MAX_NESTED) this.#nested = [];
        this.#nested.push(id, this.#current);
        this.#set(this.#active());
      },
      after: (id) => {
        const before = this.#nested.pop();
        if (this.#nested.pop() === id) {
          this.#set(before);
        } else {
          // Somebody's end was not told: better no context than another's.
          this.#nested = [];
          this.#set(undefined);
        }
      },
    }).enable();
    process.on('uncaughtExceptionMonitor', () => {
      this.#nested = [];
      this.#set(undefined);
    });
  }

  // run, enterWith and exit switch without a hook.
  #watch(storage: AnyStorage): void {
    const { run, exit, enterWith } = storage;
    const inside = <R>(callback: (...values: unknown[]) => R, values: unknown[]): R => {
      this.#set(this.#active());
      return callback(...values);
    };
    storage.run = ((store: unknown, callback: (...values: unknown[]) => unknown, ...values: unknown[]) => {
      try {
        return run.call(storage, store, () => inside(callback, values));
      } finally {
        this.#set(this.#active());
      }
    }) as AnyStorage['run'];
    storage.exit = ((callback: (...values: unknown[]) => unknown, ...values: unknown[]) => {
      try {
        return exit.call(storage, () => inside(callback, values));
      } finally {
        this.#set(this.#active());
      }
    }) as AnyStorage['exit'];
    storage.enterWith = (store: unknown) => {
      enterWith.call(storage, store);
      this.#set(this.#active());
    };
  }
}
