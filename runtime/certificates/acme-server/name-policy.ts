/** Determines which names an ACME server certifies, by its settings `allow`, `deny` and `allow_wildcard_names`. */
import { isIP } from 'node:net';
import { IpRanges } from '../../../compiler/exchange/ip-ranges.ts';
import type {
	AcmeServerSettings,
	IdentifierRules,
} from '../../../compiler/modules/directives/acme-server/acme-server-handler.ts';

/** Returns why a name is refused, or undefined if it may be ordered. `name` is in lower case. */
export function nameRefusal(name: string, settings: AcmeServerSettings): string | undefined {
	if (!isCertifiableName(name)) return `\`${name.slice(0, 100)}\` is not a name that can be certified.`;
	if (name.startsWith('*.') && settings.allow_wildcard_names !== true) return 'Wildcards are not allowed.';
	if (settings.deny && matchesRules(name, settings.deny)) return `\`${name}\` is denied.`;
	const { allow } = settings;
	const hasAllowList = (allow?.domains?.length ?? 0) + (allow?.ip_ranges?.length ?? 0) > 0;
	return hasAllowList && !matchesRules(name, allow!) ? `\`${name}\` is not allowed.` : undefined;
}

function isCertifiableName(name: string): boolean {
	if (isIP(name)) return true;
	const labels = name.replace(/^\*\./, '').split('.');
	if (name.length > 253 || /^\d+$/.test(labels.at(-1)!)) return false;
	return labels.every(label => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
}

function matchesRules(name: string, { domains = [], ip_ranges: ranges = [] }: IdentifierRules): boolean {
	if (isIP(name)) return new IpRanges(ranges).contains(name);
	if (domains.includes(name)) return true;
	const firstDot = name.indexOf('.');
	return firstDot !== -1 && domains.includes(`*${name.slice(firstDot)}`);
}
