/** Classifies host names for certificates: which are internal, which can be certified, and which wildcards cover them. */
import { parseIp } from '../../exchange/ip-address.ts';
import { IpRanges, PRIVATE_RANGES } from '../../exchange/ip-ranges.ts';

const NON_PUBLIC_RANGES = new IpRanges([...PRIVATE_RANGES, '169.254.0.0/16', 'fe80::/10']);
const INTERNAL_SUFFIXES = ['.localhost', '.local', '.internal', '.home.arpa'];

/**
 * Reports whether a name is one that public authorities do not certify: `localhost`, names in `.internal` and similar domains,
 * single labels, and private addresses.
 */
export function isInternalName(name: string): boolean {
	if (parseIp(name)) return NON_PUBLIC_RANGES.contains(name);
	if (name === 'localhost' || !name.includes('.')) return true;
	return INTERNAL_SUFFIXES.some(suffix => name.endsWith(suffix));
}

/**
 * Reports whether a certificate can be obtained for a name. The name must have valid characters, no dot at either end, and `*` only
 * as complete labels at the start.
 */
export function qualifiesForCertificate(name: string): boolean {
	if (name === '' || name.startsWith('.') || name.endsWith('.')) return false;
	if (parseIp(name)) return true;
	const labels = name.split('.');
	const firstNonWildcard = labels.findIndex(label => label !== '*');
	if (firstNonWildcard === -1 || name.length > 253) return false;
	return labels.every((label, index) => {
		if (index < firstNonWildcard) return true;
		return /^[\p{L}\p{N}_-]{1,63}$/u.test(label);
	});
}

/**
 * Returns the wildcards that cover a name, narrowest first: for `a.example.com`, `*.example.com` and `*.*.com`. Returns none for
 * addresses.
 */
export function coveringWildcards(name: string): string[] {
	if (name.includes(':') || parseIp(name)) return [];
	const labels = name.split('.');
	const wildcards: string[] = [];
	for (let starCount = 1; starCount < Math.min(labels.length, 10); starCount++) {
		labels[starCount - 1] = '*';
		wildcards.push(labels.join('.'));
	}
	return wildcards.filter(wildcard => wildcard !== name);
}

/** Returns the value for a name in a table of exact names and wildcards; undefined if nothing matches. */
export function lookUpName<T>(valuesByPattern: ReadonlyMap<string, T>, name: string): T | undefined {
	const exactValue = valuesByPattern.get(name);
	if (exactValue !== undefined) return exactValue;
	let dot = name.indexOf('.');
	let wildcardLabels = '*';
	for (let depth = 0; dot !== -1 && depth < 10; depth++) {
		const wildcardValue = valuesByPattern.get(wildcardLabels + name.slice(dot));
		if (wildcardValue !== undefined) return wildcardValue;
		dot = name.indexOf('.', dot + 1);
		wildcardLabels += '.*';
	}
	return undefined;
}
