// What all nodes of a cluster must agree on, as one number: the layout of records, commits, claims and announcements, the
// entries of the catalogue, the files of snapshots and archives, the settings of streams, and the requests between nodes.
// Nodes with different numbers share no cluster.

import { SagittaError } from '../../common/errors.js';
import { packageVersion } from '../../common/package-files.js';

/** Changes with any of these: a node that misread something would hold other data than the others. */
export const CLUSTER_FORMAT = 3;
export const VERSION = packageVersion();

/** The members by which every version recognises another format. */
export interface WrittenFormat {
  readonly format: number;
  /** The version of the program that wrote it. */
  readonly version: string;
}

/** `where` names what was read. */
export function otherFormat(where: string, { format, version }: WrittenFormat): SagittaError {
  return new SagittaError(
    'configuration_invalid',
    `${where} has format ${format}, which version ${version} of Sagitta wrote; this node, version ${VERSION}, reads format ${CLUSTER_FORMAT} and stops there. Run versions with the same format on all nodes, or bring the data into a new cluster: docs/cluster.md, Update.`,
  );
}
