// Compares what nodes say about writes with what writers see: for how long a node says that writes succeed while none
// through it is acknowledged, and that they fail while new ones are acknowledged. A node that does not answer says nothing.

import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeProcesses } from '../node-processes.js';

const PAUSE_MS = 100;
const ANSWER_MS_MAX = 1_000;
const PROMPT_MS_MAX = 1_000;

interface Said {
  /** Null while the node does not answer. */
  isReady: boolean | null;
  /** What blocks writes, if it is not ready. */
  codes: string;
  sinceMs: number;
  /** When the last write through the node was acknowledged, by kind. */
  acknowledgedAtMs: Record<WriteKind, number>;
  /** Since when writes that began after the node last changed its mind have been acknowledged promptly. */
  promptSinceMs: Record<WriteKind, number>;
}

/** A node is ready only if writes of both kinds succeed. */
export type WriteKind = 'rows' | 'catalogue';

const bothAt = (ms: number) => ({ rows: ms, catalogue: ms });
const earlierOf = ({ rows, catalogue }: Record<WriteKind, number>) => Math.min(rows, catalogue);
const laterOf = ({ rows, catalogue }: Record<WriteKind, number>) => Math.max(rows, catalogue);

/** The longest times in milliseconds. */
export interface WrongReadiness {
  readonly falselyReadyMs: number;
  readonly falselyUnreadyMs: number;
  /** The problems that the node gave as reasons then. */
  readonly falseReasons: string;
}

export class ReadinessWatch {
  readonly #nodes: NodeProcesses;
  readonly #said = new Map<string, Said>();
  readonly #watching: Promise<void>[] = [];
  #isClosed = false;
  #falselyReadyMs = 0;
  #falselyUnreadyMs = 0;
  #falseReasons = '';

  constructor(nodes: NodeProcesses) {
    this.#nodes = nodes;
    const nowMs = performance.now();
    for (const node of nodes.names) {
      this.#said.set(node, {
        isReady: null,
        codes: '',
        sinceMs: nowMs,
        acknowledgedAtMs: bothAt(nowMs),
        promptSinceMs: bothAt(Infinity),
      });
      this.#watching.push(this.#watch(node));
    }
  }

  /** Restarts the measurement. */
  begin(): void {
    this.#falselyReadyMs = 0;
    this.#falselyUnreadyMs = 0;
    this.#falseReasons = '';
    const nowMs = performance.now();
    for (const said of this.#said.values()) {
      said.sinceMs = nowMs;
      said.acknowledgedAtMs = bothAt(nowMs);
      said.promptSinceMs = bothAt(Infinity);
    }
  }

  get wrong(): WrongReadiness {
    return {
      falselyReadyMs: Math.round(this.#falselyReadyMs),
      falselyUnreadyMs: Math.round(this.#falselyUnreadyMs),
      falseReasons: this.#falseReasons,
    };
  }

  /** Called when a write that was begun at a time, on `performance.now`, has been acknowledged through a node. */
  acknowledged(node: string, kind: WriteKind, begunAtMs: number): void {
    const said = this.#said.get(node)!;
    const nowMs = performance.now();
    said.acknowledgedAtMs[kind] = nowMs;
    // A write that had to wait does not show that writes succeed.
    const isPrompt = nowMs - begunAtMs < PROMPT_MS_MAX;
    if (!isPrompt) said.promptSinceMs[kind] = Infinity;
    if (said.isReady !== false || begunAtMs <= said.sinceMs || !isPrompt) return;
    said.promptSinceMs[kind] = Math.min(said.promptSinceMs[kind], nowMs);
    const wrongMs = nowMs - laterOf(said.promptSinceMs);
    if (wrongMs <= this.#falselyUnreadyMs) return;
    this.#falselyUnreadyMs = wrongMs;
    this.#falseReasons = said.codes;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#watching);
  }

  async #watch(node: string): Promise<void> {
    const said = this.#said.get(node)!;
    while (!this.#isClosed) {
      const isReady = await this.#ask(node, said);
      const nowMs = performance.now();
      if (isReady !== said.isReady) {
        said.isReady = isReady;
        said.sinceMs = nowMs;
        said.promptSinceMs = bothAt(Infinity);
      }
      if (isReady === true) {
        const quietSinceMs = Math.max(said.sinceMs, earlierOf(said.acknowledgedAtMs));
        this.#falselyReadyMs = Math.max(this.#falselyReadyMs, nowMs - quietSinceMs);
      }
      await sleep(PAUSE_MS);
    }
  }

  async #ask(node: string, said: Said): Promise<boolean | null> {
    try {
      const reply = await fetch(`${this.#nodes.urlOf(node)}/readyz?for=write`, {
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const { problems } = (await reply.json()) as {
        readonly problems: readonly { readonly code: string; readonly blocks_writes: boolean }[];
      };
      said.codes = problems.flatMap((each) => (each.blocks_writes ? each.code : [])).join('+');
      return reply.ok;
    } catch {
      return null;
    }
  }
}
