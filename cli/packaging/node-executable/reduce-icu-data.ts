/**
 * Reduces Node's copy of the Unicode data (ICU) to what a server needs: English, collation, time zones, normalization and
 * international domain names. Node's own build with `--with-intl=small-icu` keeps about the same.
 *
 * The format: a header that begins with its own length; the number of items; for each item, sorted by name, the offset of its
 * name and the offset of its data; the names; the data. Offsets count from the end of the header. See ICU's `icupkg` and udata.h.
 */

/** Items that are dropped: names of languages, regions and units, rules for breaking words and lines, and legacy character sets. */
const DROPPED_ITEMS_PATTERN =
	/^(?:brkitr|lang|rbnf|region|translit|unit)\/|\.(?:cnv|spp|cfu)$|^(?:cnvalias|unames)\.icu$/;
/**
 * Matches the items of one language, such as `de.res` and `curr/zh_Hant.res`, but not `res_index.res`, the list of all languages.
 */
const LANGUAGE_ITEM_PATTERN = /^(?:\w+\/)?(?!res_index)([a-z]{2,3})(?:_\w+)?\.res$/;

/** The alignment of each item, in bytes. */
const ITEM_ALIGNMENT = 16;

/** Returns the data without the dropped items and the items of languages other than English. */
export function reduceIcuData(data: Buffer): Buffer {
	const headerSize = data.readUInt16LE(0);
	if (data.readUInt16BE(2) !== 0xda27 || data.toString('latin1', 12, 16) !== 'CmnD') {
		throw new Error('The Unicode data of the executable has a format that the build does not know.');
	}
	const content = data.subarray(headerSize);
	const allItems = Array.from({ length: content.readUInt32LE(0) }, (_, i) => {
		const nameOffset = content.readUInt32LE(4 + 8 * i);
		return {
			name: content.toString('latin1', nameOffset, content.indexOf(0, nameOffset)),
			start: content.readUInt32LE(8 + 8 * i),
		};
	});
	const keptItems = allItems.flatMap(({ name, start }, i) =>
		isKept(name.slice(name.indexOf('/') + 1)) ? [{ name, data: content.subarray(start, allItems[i + 1]?.start) }] : [],
	);
	const align = (size: number): number => Math.ceil(size / ITEM_ALIGNMENT) * ITEM_ALIGNMENT;
	const namesOffset = 4 + 8 * keptItems.length;
	const names = Buffer.from(keptItems.map(({ name }) => `${name}\0`).join(''), 'latin1');
	// Items must be aligned in memory, counted from the start of the header.
	const dataOffset = align(headerSize + namesOffset + names.length) - headerSize;
	const contentSize = keptItems.reduce((sum, item) => sum + align(item.data.length), dataOffset);
	const reducedData = Buffer.alloc(headerSize + contentSize);
	data.copy(reducedData, 0, 0, headerSize);
	const reducedContent = reducedData.subarray(headerSize);
	reducedContent.writeUInt32LE(keptItems.length, 0);
	names.copy(reducedContent, namesOffset);
	let nameAt = namesOffset;
	let itemOffset = dataOffset;
	for (const [i, item] of keptItems.entries()) {
		reducedContent.writeUInt32LE(nameAt, 4 + 8 * i);
		reducedContent.writeUInt32LE(itemOffset, 8 + 8 * i);
		item.data.copy(reducedContent, itemOffset);
		nameAt += item.name.length + 1;
		itemOffset += align(item.data.length);
	}
	return reducedData;
}

function isKept(name: string): boolean {
	if (DROPPED_ITEMS_PATTERN.test(name)) return false;
	const language = LANGUAGE_ITEM_PATTERN.exec(name)?.[1];
	return language === undefined || language === 'en';
}
