/** Writes `split_clients` as a `split` that sets a variable. Both use the same hash, so clients keep their branches. */
import { quoted, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { translated, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** Placeholders that no request leaves empty. */
const NEVER_EMPTY = /\{(?:remote_host|client_ip|uuid|orig_uri|path|method|scheme|http\.request\.(?:local|proto).*)\}/;

/** Returns the values that a `split_clients` may give. */
export function splitValues(lines: readonly NginxDirective[]): string[] {
	const values = lines.map(({ args }) => args[0] ?? '');
	return lines.some(({ name }) => name === '*') ? values : [...values, ''];
}

/** Returns lines that set `variable` to the value of the share that a client is in. Throws Untranslatable. */
export function splitLines({ args, block }: NginxDirective, variable: string, variables: Variables): string[] {
	const key = translated(args[0] ?? '', variables);
	if (!key.includes('{')) throw new Untranslatable('its key is the same for all requests');
	const set = (value: string): string => `vars ${variable} ${quoted(value.replace(/[{}]/g, '\\$&'))}`;
	// Hundredths of a percent, because sums of decimal fractions are inexact.
	let sum = 0;
	for (const { name } of block!) {
		if (name === '*') continue;
		if (!/^\d{1,3}(?:\.\d{1,2})?%$/.test(name)) throw new Untranslatable(`\`${name}\` is no percentage`);
		sum += Math.round(Number(name.slice(0, -1)) * 100);
	}
	if (sum > 10_000) throw new Untranslatable('its percentages add up to more than 100%');
	const shares = block!.filter(({ name }) => name !== '*');
	const others = block!.find(({ name }) => name === '*');
	const [first] = shares;
	if (!first) return [set(others?.args[0] ?? '')];
	const branches = others && sum < 10_000 ? [...shares, others] : shares;
	const lines = [`split ${word(key)} {`];
	for (const { name, args } of branches) lines.push(`\t${name} {`, `\t\t${set(args[0] ?? '')}`, '\t}');
	lines.push('}');
	// nginx puts an empty key, whose hash is 0, in the first share; `split` puts it in no share.
	const mayBeEmpty = /^(?:\{[^{}]+\})+$/.test(key) && !NEVER_EMPTY.test(key);
	if (!mayBeEmpty) return lines;
	const isEmpty = key.match(/\{[^{}]+\}/g)!.map(placeholder => `vars ${placeholder} ""`);
	return [
		...[`when ${isEmpty.join(' and ')} {`, `\t${set(first.args[0] ?? '')}`, '} else {'],
		...lines.map(line => `\t${line}`),
		'}',
	];
}
