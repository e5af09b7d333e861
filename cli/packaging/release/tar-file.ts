/** Tar archives that have the same bytes for the same content. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Header } from 'tar';

/** A file, folder or symbolic link of an archive. */
export interface PackedFile {
	/** The path of the entry, without a slash at the beginning or end. */
	readonly path: string;
	/** The permissions; by default 0o644 for a file, 0o755 for a folder, and 0o777 for a link. */
	readonly mode?: number;
	/** The user ID and group ID of the file's owner; 0 (root) by default. */
	readonly owner?: number;
	/** The target of a link. */
	readonly link?: string;
	/** The content of a file. Folders and links have none. */
	readonly content?: Buffer | string;
}

const BLOCK_SIZE = 512;

/**
 * Returns an archive with the given files, and the folders above them.
 * @param timeSeconds The time of modification of all files, in seconds since 1970.
 * @param prefix The beginning of all paths: `./` in a Debian package.
 */
export function tarFile(files: readonly PackedFile[], timeSeconds: number, prefix = ''): Buffer {
	const blocks: Buffer[] = [];
	for (const file of withFolders(files)) {
		const content = Buffer.from(file.content ?? '');
		const isFolder = file.content === undefined && file.link === undefined;
		const header = new Header({
			path: prefix + file.path + (isFolder && file.path !== '' ? '/' : ''),
			mode: file.mode ?? (isFolder ? 0o755 : file.link === undefined ? 0o644 : 0o777),
			uid: file.owner ?? 0,
			gid: file.owner ?? 0,
			...(file.owner === undefined ? { uname: 'root', gname: 'root' } : {}),
			size: content.length,
			mtime: new Date(timeSeconds * 1000),
			type: isFolder ? 'Directory' : file.link === undefined ? 'File' : 'SymbolicLink',
			...(file.link === undefined ? {} : { linkpath: file.link }),
		});
		const block = Buffer.alloc(BLOCK_SIZE);
		if (header.encode(block)) throw new Error(`The path ${file.path} is too long for an archive.`);
		blocks.push(block, content, Buffer.alloc(-content.length & (BLOCK_SIZE - 1)));
	}
	return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_SIZE)]);
}

/** The effort of compression, from 1 to 9. */
export type CompressionLevel = number;

/** Compresses an archive with gzip, which every system can open. */
export function compressGzip(archive: Buffer, compressionLevel: CompressionLevel): Promise<Buffer> {
	return promisify(gzip)(archive, { level: compressionLevel });
}

/** Compresses an archive with the program xz. The result is a third smaller than with gzip. */
export async function compressXz(archive: Buffer, compressionLevel: CompressionLevel): Promise<Buffer> {
	// The number of threads is fixed, because the output with one thread differs from the output with several.
	const xz = spawn('xz', [`-${compressionLevel}`, '--threads=2', '--stdout'], { stdio: ['pipe', 'pipe', 'inherit'] });
	const closeEvent = once(xz, 'close');
	xz.stdin.on('error', () => {});
	xz.stdin.end(archive);
	const [compressed, [status]] = await Promise.all([buffer(xz.stdout), closeEvent]);
	if (status !== 0) throw new Error('xz failed; it is in the package xz-utils.');
	return compressed;
}

/** Returns the files sorted by path, together with the folders above them that are not in `files`. */
function withFolders(files: readonly PackedFile[]): PackedFile[] {
	const filesByPath = new Map(files.map(file => [file.path, file]));
	for (const { path } of files) {
		for (
			let slashIndex = path.lastIndexOf('/');
			slashIndex !== -1;
			slashIndex = path.lastIndexOf('/', slashIndex - 1)
		) {
			const folder = path.slice(0, slashIndex);
			if (!filesByPath.has(folder)) filesByPath.set(folder, { path: folder });
		}
	}
	return [...filesByPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
