// The texts of a map's points: reads the metadata of the sample into a worker, which finds points and names dense areas.

import type { CollectionRecord } from '@sagitta/client';
import { useEffect, useMemo, useRef, useState } from 'react';
import { session } from '../../api/session.js';
import type { PointCategories } from './area-labels.js';
import { type ColumnColours, MISSING_ENTRY, OTHER_ENTRY } from './column-colours.js';
import type { MapData } from './map-state.js';
import type { PointHits } from './point-search.js';
import type { Description, TextReply, TextRequest } from './text-worker.js';
import { sampleExport } from './use-point-colours.js';

export interface PointTextSource {
  /** Whether the texts have been read. Ids can be found before that. */
  readonly isRead: boolean;
  readonly search: (text: string) => Promise<PointHits>;
  readonly describe: (
    positions: Float32Array,
    categories: PointCategories | undefined,
  ) => Promise<Description>;
}

/** Undefined until the worker has started. */
export function usePointTexts(
  { id }: CollectionRecord,
  data: MapData,
): PointTextSource | undefined {
  const [source, setSource] = useState<PointTextSource>();
  useEffect(() => {
    const controller = new AbortController();
    const connection = connect(data.ids, () => {
      // The export may have more rows than the sample.
      controller.abort();
      setSource((before) => before && { ...before, isRead: true });
    });
    setSource({ ...connection, isRead: false });
    void readTexts(id, data, controller.signal, connection.send);
    return () => {
      controller.abort();
      connection.close();
      setSource(undefined);
    };
  }, [id, data]);
  return source;
}

/** A request without its token. */
type Question<Kind> = Omit<Extract<TextRequest, { kind: Kind }>, 'kind' | 'token'>;

function connect(ids: readonly string[], onRead: () => void) {
  const worker = new Worker(new URL('./text-worker.ts', import.meta.url), { type: 'module' });
  const waiting = new Map<number, (answer: PointHits | Description) => void>();
  let lastToken = 0;
  worker.addEventListener('message', ({ data }: MessageEvent<TextReply>) => {
    if (data.kind === 'read') return onRead();
    waiting.get(data.token)?.(data.answer);
    waiting.delete(data.token);
  });
  const send = (request: TextRequest) => worker.postMessage(request);
  const ask = <Answer extends PointHits | Description>(
    kind: 'search' | 'describe',
    question: Question<'search'> | Question<'describe'>,
  ) =>
    new Promise<Answer>((resolve) => {
      const token = ++lastToken;
      waiting.set(token, (answer) => resolve(answer as Answer));
      send({ kind, token, ...question } as TextRequest);
    });
  send({ kind: 'points', ids });
  return {
    send,
    search: (text: string) => ask<PointHits>('search', { text }),
    describe: (positions: Float32Array, categories: PointCategories | undefined) =>
      ask<Description>('describe', { positions, categories }),
    // Questions stay unanswered, like those of a view that has been left.
    close: () => worker.terminate(),
  };
}

/** Without the texts, points are found by id only, and areas have no names; the map itself needs none. */
async function readTexts(
  id: string,
  data: MapData,
  signal: AbortSignal,
  send: (request: TextRequest) => void,
): Promise<void> {
  try {
    const vectors = session.get().client.collection(id);
    const options = { ...sampleExport(data.request), format: 'ndjson', signal } as const;
    const { body } = await vectors.exportStream(options);
    for await (const bytes of body) send({ kind: 'rows', bytes });
  } catch (error) {
    if (signal.aborted) return;
    console.warn('The texts of the map could not be read:', error);
  }
  send({ kind: 'end' });
}

/** While a layout moves, areas are described at most once in this time. */
const MOVING_MS = 700;

interface DescribedMap {
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  readonly colours: ColumnColours | undefined;
  /** Whether the positions are about to change again. */
  readonly isMoving: boolean;
}

/** The densities and labels for the positions; those of earlier positions while the worker computes. */
export function useDescription(
  source: PointTextSource | undefined,
  { positions, colours, isMoving }: DescribedMap,
): Description | undefined {
  const [described, setDescribed] = useState<Description>();
  const categories = useMemo(() => categoriesOf(colours), [colours]);
  const isBusy = useRef(false);
  const wanted = useRef<() => void>(undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each worker has its own `search`
  useEffect(() => {
    // A question to a worker that has ended has no answer.
    isBusy.current = false;
    return () => setDescribed(undefined);
  }, [source?.search]);
  useEffect(() => {
    if (source === undefined) return;
    let isCurrent = true;
    const run = () => {
      isBusy.current = true;
      wanted.current = undefined;
      void source.describe(positions, categories).then((description) => {
        setDescribed(description);
        const next = () => {
          isBusy.current = false;
          wanted.current?.();
        };
        if (isMoving) setTimeout(next, MOVING_MS);
        else next();
      });
    };
    wanted.current = () => isCurrent && run();
    if (!isBusy.current) run();
    return () => {
      isCurrent = false;
    };
  }, [source, positions, categories, isMoving]);
  const isFitting = described?.densities.length === positions.length / 2;
  return isFitting ? described : undefined;
}

/** Numbers on a scale are no names, and neither are the entries for several values. */
function categoriesOf(colours: ColumnColours | undefined): PointCategories | undefined {
  if (colours?.kind !== 'categories') return undefined;
  const named = colours.legend.filter(
    ({ entry }) => entry !== OTHER_ENTRY && entry !== MISSING_ENTRY,
  );
  return {
    entries: colours.entries,
    names: new Map(named.map(({ entry, label }) => [entry, label])),
  };
}
