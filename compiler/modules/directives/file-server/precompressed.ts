/** Sidecars: files next to a file that contain its compressed form or its entity tag. */
import type { Exchange } from '../../../exchange/exchange.ts';
import { FileError, type FileReader, type OpenFile } from '../../../exchange/leases.ts';
import { preferredCoding } from '../../representations/accept-encoding.ts';

/** Codings of sidecars, in default order of preference. */
export const SIDECAR_CODINGS = ['br', 'zstd', 'gzip'] as const;

export type SidecarCoding = (typeof SIDECAR_CODINGS)[number];

const SUFFIX_BY_CODING: { readonly [coding in SidecarCoding]: string } = { br: '.br', zstd: '.zst', gzip: '.gz' };

/** Maximum size of an entity tag file in bytes. */
const MAX_TAG_BYTES = 1024;

/** A compressed form of a file, in a coding that the client accepts. */
export interface Sidecar {
	readonly file: OpenFile;
	readonly coding: SidecarCoding;
}

/**
 * Opens the compressed sidecar in the coding that the client prefers. Returns undefined if no sidecar exists in an accepted coding.
 */
export function openSidecar(
	x: Exchange,
	reader: FileReader,
	root: string,
	path: string,
	followSymlinks: boolean,
	codings: readonly SidecarCoding[],
): Sidecar | undefined {
	const acceptEncoding = x.request.headers.getCombined('accept-encoding');
	let remainingCodings: readonly SidecarCoding[] = codings;
	for (;;) {
		const coding = preferredCoding(acceptEncoding, remainingCodings) as SidecarCoding | undefined;
		if (coding === undefined) return undefined;
		const file = openIfPresent(reader, root, path + SUFFIX_BY_CODING[coding], followSymlinks);
		if (file) return { file, coding };
		remainingCodings = remainingCodings.filter(candidate => candidate !== coding);
	}
}

function openIfPresent(reader: FileReader, root: string, path: string, followSymlinks: boolean): OpenFile | undefined {
	try {
		const file = reader.open(root, path, followSymlinks);
		if (!(file instanceof Promise)) return file;
		// Only a reader of files that are not on the local disk returns a promise. The response does not wait for such sidecars.
		file.then(opened => opened.close()).catch(() => {});
		return undefined;
	} catch (error) {
		if (error instanceof FileError) return undefined;
		throw error;
	}
}

/**
 * Returns the entity tag, with its quotes, in the first tag file that exists next to a file. Returns undefined if no tag file
 * exists or the tag is invalid.
 */
export function readSidecarTag(reader: FileReader, file: OpenFile, extensions: readonly string[]): string | undefined {
	for (const extension of extensions) {
		const bytes = reader.readStart(file.path + extension, MAX_TAG_BYTES + 1);
		if (!bytes) continue;
		const tagText = Buffer.from(bytes).toString('latin1').trim();
		const unquotedTag = tagText.replace(/^W\//, '').replace(/^"(.*)"$/s, '$1');
		// Only `etagc` characters (RFC 9110 §8.8.3) are valid in the field.
		if (unquotedTag === '' || unquotedTag.length > MAX_TAG_BYTES || !/^[\x21\x23-\x7e\x80-\xff]+$/.test(unquotedTag))
			return undefined;
		return `${tagText.startsWith('W/') ? 'W/' : ''}"${unquotedTag}"`;
	}
	return undefined;
}
