/** The system's error codes in words, for log entries and messages. */

/** What error codes of calls on files and descriptors mean. */
export const FILE_REASONS: { readonly [code: string]: string } = {
	EACCES: 'permission denied',
	EPERM: 'permission denied',
	EROFS: 'the file system is read-only',
	ENOENT: 'it does not exist',
	ENOSPC: 'the disk is full',
	EDQUOT: 'the disk quota is exceeded',
	EISDIR: 'it is a folder',
	ELOOP: 'its path contains too many symbolic links',
	EMFILE: 'too many files are open in this process',
	ENFILE: 'too many files are open on this machine',
	ENOTDIR: 'a component of its path is not a folder',
	EIO: 'the device reports an error',
};

/** Returns what an error code means, with the code for searching: `the disk is full (ENOSPC)`. Unknown codes are returned as they are. */
export function systemReason(code: string): string {
	const reason = FILE_REASONS[code];
	return reason === undefined ? code : `${reason} (${code})`;
}
