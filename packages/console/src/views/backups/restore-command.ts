// The command that restores a backup, for a shell on the host of the server.

/** Restoring never overwrites anything, so the data directory is a new one. */
export function restoreCommand(name: string): string {
  return `sagitta restore "$SAGITTA_BACKUP_DIR"/${quoted(name)} --data-dir ./restored`;
}

function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
