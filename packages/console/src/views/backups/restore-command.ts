// The command that restores a backup, for a shell on the server's host.

/** Names a new data directory, because `restore` never overwrites one. */
export function restoreCommand(name: string): string {
  return `sagitta restore "$SAGITTA_BACKUP_DIR"/${quoted(name)} --data-dir ./restored`;
}

function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
