// Writes groups of duplicates as NDJSON, one line per group, or as CSV, one line per vector.

import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import type { JsonObject } from '../../../../../src/common/types.js';
import { csvLine } from '../../ui/csv.js';
import type { MetadataById } from './keep-rules.js';
import type { SimilarGroup } from './similar-pairs.js';

interface ExportedGroup {
  readonly group: SimilarGroup;
  /** The id of the member to keep; null to keep all. */
  readonly kept: string | null;
}

interface ExportedMember {
  readonly id: string;
  readonly score: number;
  readonly is_kept: boolean;
  readonly metadata: JsonObject;
}

/** The lines, including their line breaks. */
export function groupsAsNdjson(groups: readonly ExportedGroup[], metadata: MetadataById): string[] {
  return groups.map((exported, at) => {
    const line = { group: at + 1, vectors: membersOf(exported, metadata) };
    return `${stringifyExactJson(line)}\n`;
  });
}

export function groupsAsCsv(groups: readonly ExportedGroup[], metadata: MetadataById): string[] {
  const lines = groups.flatMap((exported, at) =>
    membersOf(exported, metadata).map(({ id, score, is_kept, metadata }) =>
      csvLine([at + 1, id, is_kept, score, metadata]),
    ),
  );
  return [csvLine(['group', 'id', 'is_kept', 'score', 'metadata']), ...lines];
}

function membersOf({ group, kept }: ExportedGroup, metadata: MetadataById): ExportedMember[] {
  return group.members.map(({ id, score }) => ({
    id,
    score,
    is_kept: kept === null || kept === id,
    metadata: metadata.get(id) ?? {},
  }));
}
