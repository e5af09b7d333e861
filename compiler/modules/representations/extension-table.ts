/**
 * Content types by file extension: mime-db's registry, reduced to one type per extension. The build replaces this module with the
 * finished table, because reading the registry takes longer than evaluating all other modules of a thread.
 */
import db from 'mime-db';
import { lazily } from '../../exchange/lazily.ts';

/** Extensions for which browsers and tools expect another type than the one that {@link typeRank} prefers. */
const PREFERRED_TYPES: readonly (readonly [extension: string, type: string])[] = [
	['asc', 'application/pgp-signature'],
	['ico', 'image/x-icon'],
	['key', 'application/vnd.apple.keynote'],
	['m4a', 'audio/mp4'],
	['mp4', 'video/mp4'],
	['mpg4', 'video/mp4'],
	['mts', 'video/mp2t'],
	['rtf', 'application/rtf'],
	['sub', 'text/vnd.dvb.subtitle'],
	['wav', 'audio/wav'],
	['xml', 'text/xml'],
];

/**
 * Returns the rank of a type; higher is better. Registered types rank above types that only servers use, and standard names above
 * experimental ones (`x-`).
 */
function typeRank(type: string, source: string | undefined): number {
	const registeredRank = source === 'iana' ? 2 : 0;
	return registeredRank + (type.includes('/x-') ? 0 : 1);
}

function chooseExtensionTypes(): ReadonlyMap<string, string> {
	const typeByExtension = new Map<string, string>();
	const rankByExtension = new Map<string, number>();
	for (const [type, mimeType] of Object.entries(db)) {
		for (const extension of mimeType.extensions ?? []) {
			const newRank = typeRank(type, mimeType.source);
			if (newRank <= (rankByExtension.get(extension) ?? -1)) continue;
			rankByExtension.set(extension, newRank);
			typeByExtension.set(extension, withCharset(type));
		}
	}
	for (const [extension, type] of PREFERRED_TYPES) typeByExtension.set(extension, withCharset(type));
	return typeByExtension;
}

function withCharset(type: string): string {
	return type.startsWith('text/') ? `${type}; charset=utf-8` : type;
}

/** Returns the content types by file extension, with `charset=utf-8` for text types. */
export const extensionTypes: () => ReadonlyMap<string, string> = lazily(chooseExtensionTypes);
