// The sizes of the collections that a node holds, as it announces them. Announcements are sent several times a second,
// so they name only the largest collections and add up the others.

/** The collections with a replication factor that a node holds. */
export interface AnnouncedSizes {
  /** Bytes on disk of the largest ones, by incarnation. */
  readonly largest: Readonly<Record<string, number>>;
  readonly othersCount: number;
  readonly othersBytes: number;
}

/** The names and sizes of this many collections are about 2 KB. */
const NAMED_MAX = 32;

export function summarizeSizes(bytesByIncarnation: ReadonlyMap<string, number>): AnnouncedSizes {
  const sorted = [...bytesByIncarnation].sort(([, a], [, b]) => b - a);
  const others = sorted.slice(NAMED_MAX);
  return {
    largest: Object.fromEntries(sorted.slice(0, NAMED_MAX)),
    othersCount: others.length,
    othersBytes: others.reduce((sum, [, bytes]) => sum + bytes, 0),
  };
}

export const NO_SIZES = summarizeSizes(new Map());

export function isAnnouncedSizes(value: unknown): value is AnnouncedSizes {
  const { largest, othersCount, othersBytes } = (value ?? {}) as Partial<
    Record<keyof AnnouncedSizes, unknown>
  >;
  return (
    typeof largest === 'object' &&
    largest !== null &&
    typeof othersCount === 'number' &&
    typeof othersBytes === 'number'
  );
}

/** The bytes of a collection. One that is not named counts as much as the average of the others. */
export function bytesOf(
  { largest, othersCount, othersBytes }: AnnouncedSizes,
  incarnation: string,
): number {
  return largest[incarnation] ?? othersBytes / Math.max(1, othersCount);
}
