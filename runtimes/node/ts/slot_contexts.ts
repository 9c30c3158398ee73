// Where Node.js keeps no frame with a continuation: one slot, which always holds the store of what runs now. An
// async hook refills it whenever another continuation begins, which is what makes this way the slow one.

import { AsyncLocalStorage, createHook } from 'async_hooks';
import type { AsyncHook } from 'async_hooks';
import type { Binding } from './binding';
import { ContextCopy } from './context_copy';

// More than any program nests; if it is reached, the ends of some have not been told.
const MAX_NESTED = 1000;

type AnyStorage = AsyncLocalStorage<unknown>;

export class SlotContexts {
  readonly #native: Binding;
  // That of setContext() and runWithContext(). Nobody else has it; once it is used, its store decides.
  readonly #own = new AsyncLocalStorage<ContextCopy | undefined>();
  #ownIsUsed = false;
  // The others that are followed. The first that has a store decides.
  readonly #storages: AnyStorage[] = [];
  #hook: AsyncHook | undefined;
  #current: unknown = undefined;
  // The ids of the continuations that have begun and not ended, each with what the slot held before it.
  #nested: unknown[] = [];

  constructor(native: Binding) {
    this.#native = native;
    native.useContextCopies(ContextCopy.prototype);
  }

  /** The context of what runs from here on. */
  enter(context: ContextCopy | undefined): void {
    this.#useOwn();
    this.#own.enterWith(context);
    this.#set(context ?? this.#active());
  }

  run<Result, Values extends unknown[]>(
    context: ContextCopy | undefined,
    callback: (...values: Values) => Result,
    values: Values,
  ): Result {
    this.#useOwn();
    try {
      return this.#own.run(context, () => {
        this.#set(context ?? this.#active());
        return callback(...values);
      });
    } finally {
      this.#set(this.#active());
    }
  }

  #useOwn(): void {
    if (this.#ownIsUsed) return;
    this.#ownIsUsed = true;
    this.#startHook();
  }

  /** Follows a storage of the program from now on. */
  follow(storage: AnyStorage): void {
    if (this.#storages.includes(storage)) return;
    this.#storages.push(storage);
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
    const own = this.#ownIsUsed ? this.#own.getStore() : undefined;
    if (own !== undefined) return own;
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
