// The commands of the palette: their order, and which of them match a text.

import { COLLECTION_VIEWS, type CollectionView } from '../views/routes.js';

export interface PaletteCommand {
  readonly label: string;
  /** What kind of command it is, shown beside the label. */
  readonly note: string;
  readonly run: () => void;
}

/** The most commands of one kind that are shown. */
export const SHOWN_MAX = 60;

/** The id of the collection at an address such as `/collections/a%20b/query`. */
export function collectionAt(location: string): string | undefined {
  const id = /^\/collections\/([^/]+)/.exec(location)?.[1];
  try {
    return id === undefined ? undefined : decodeURIComponent(id);
  } catch {
    return undefined;
  }
}

/** Opens each view of a collection. */
export function viewCommands(
  id: string,
  open: (id: string, view: CollectionView) => void,
): PaletteCommand[] {
  return COLLECTION_VIEWS.map(({ name, label }) => ({
    label: `${id}: ${label}`,
    note: 'collection',
    run: () => open(id, name),
  }));
}

/** The commands whose labels contain every word of the text; those that begin with it come first. */
export function matching(
  commands: readonly PaletteCommand[],
  text: string,
): readonly PaletteCommand[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const found = commands.filter(({ label }) =>
    words.every((word) => label.toLowerCase().includes(word)),
  );
  const begins = ({ label }: PaletteCommand) => label.toLowerCase().startsWith(wanted);
  const ordered = [...found.filter(begins), ...found.filter((command) => !begins(command))];
  return ordered.slice(0, SHOWN_MAX);
}
