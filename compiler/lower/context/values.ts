/** Parses the value types that both languages share: durations, sizes, statuses, booleans. */

const MILLISECONDS_PER_UNIT: { readonly [unit: string]: number } = {
	ns: 1e-6,
	us: 1e-3,
	µs: 1e-3,
	μs: 1e-3,
	ms: 1,
	s: 1000,
	m: 60_000,
	h: 3_600_000,
	d: 86_400_000,
};
const DURATION_PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)/y;
const MAX_DURATION_CHARS = 1024;
const SIZE_PATTERN = /^(\d+(?:\.\d*)?|\.\d+)(?:([kmgt])(i?))?b?$/i;
/** The exponent of 1000 or 1024 that each letter of a size stands for. */
const SIZE_EXPONENTS: { readonly [letter: string]: number } = { k: 1, m: 2, g: 3, t: 4 };

/** Parses a duration such as `300ms`, `1h30m`, `-1s`, `7d` or `0` to milliseconds; undefined if the text is invalid. */
export function parseDuration(text: string): number | undefined {
	if (text.length > MAX_DURATION_CHARS) return undefined;
	const sign = text[0] === '-' ? -1 : 1;
	let offset = text[0] === '-' || text[0] === '+' ? 1 : 0;
	if (text.slice(offset) === '0') return 0;
	if (offset === text.length) return undefined;
	let milliseconds = 0;
	while (offset < text.length) {
		DURATION_PART.lastIndex = offset;
		const part = DURATION_PART.exec(text);
		if (!part) return undefined;
		milliseconds += Number(part[1]) * MILLISECONDS_PER_UNIT[part[2]!]!;
		offset = DURATION_PART.lastIndex;
	}
	return sign * milliseconds;
}

/**
 * Parses a size such as `512`, `64KiB` or `10MB` to bytes, rounded down; undefined if the text is invalid. The `B` is optional:
 * `10M` is `10MB`, and `64Ki` is `64KiB`.
 */
export function parseSize(text: string): number | undefined {
	const parts = SIZE_PATTERN.exec(text);
	if (!parts) return undefined;
	const exponent = parts[2] === undefined ? 0 : SIZE_EXPONENTS[parts[2].toLowerCase()]!;
	const bytes = Math.floor(Number(parts[1]) * (parts[3] ? 1024 : 1000) ** exponent);
	return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Parses a status from 100 to 599; undefined for anything else. */
export function parseStatus(text: string): number | undefined {
	return /^[1-5]\d\d$/.test(text) ? Number(text) : undefined;
}

/** Parses `on`, `off`, `yes`, `no`, `true` or `false`, ignoring case; undefined for anything else. */
export function parseBoolean(text: string): boolean | undefined {
	switch (text.toLowerCase()) {
		case 'on':
		case 'yes':
		case 'true':
			return true;
		case 'off':
		case 'no':
		case 'false':
			return false;
		default:
			return undefined;
	}
}
