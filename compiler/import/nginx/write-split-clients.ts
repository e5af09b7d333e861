/** Writes `split_clients` as a `split` that sets a variable. Both use the same hash, so a client keeps its value. */
import { quoteText, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { translateText, type Variables } from './nginx-values.ts';
import { Untranslatable } from './untranslatable.ts';

/** Matches placeholders whose value is never empty. */
const NEVER_EMPTY_PATTERN =
	/\{(?:remote_host|client_ip|uuid|orig_uri|path|method|scheme|http\.request\.(?:local|proto).*)\}/;

/** Returns the values that the variable of a `split_clients` may have. */
export function splitValues(lines: readonly NginxDirective[]): string[] {
	const values = lines.map(({ args }) => args[0] ?? '');
	return lines.some(({ name }) => name === '*') ? values : [...values, ''];
}

/** Returns lines that set `variable` to the value of the share to which the request's key belongs. Throws Untranslatable. */
export function splitLines({ args, block }: NginxDirective, variable: string, variables: Variables): string[] {
	const hashKey = translateText(args[0] ?? '', variables);
	if (!hashKey.includes('{')) throw new Untranslatable('its key is the same for all requests');
	const assignmentLine = (value: string): string => `vars ${variable} ${quoteText(value.replace(/[{}]/g, '\\$&'))}`;
	// The sum is in hundredths of a percent, because sums of decimal fractions would be inexact.
	let sumHundredths = 0;
	for (const { name } of block!) {
		if (name === '*') continue;
		if (!/^\d{1,3}(?:\.\d{1,2})?%$/.test(name)) throw new Untranslatable(`\`${name}\` is no percentage`);
		sumHundredths += Math.round(Number(name.slice(0, -1)) * 100);
	}
	if (sumHundredths > 10_000) throw new Untranslatable('its percentages add up to more than 100%');
	const shares = block!.filter(({ name }) => name !== '*');
	const remainderDirective = block!.find(({ name }) => name === '*');
	const [firstShare] = shares;
	if (!firstShare) return [assignmentLine(remainderDirective?.args[0] ?? '')];
	const branches = remainderDirective && sumHundredths < 10_000 ? [...shares, remainderDirective] : shares;
	const lines = [`split ${word(hashKey)} {`];
	for (const { name, args } of branches) lines.push(`\t${name} {`, `\t\t${assignmentLine(args[0] ?? '')}`, '\t}');
	lines.push('}');
	// nginx assigns an empty key, whose hash is 0, to the first share, while `split` assigns it to none.
	const mayBeEmpty = /^(?:\{[^{}]+\})+$/.test(hashKey) && !NEVER_EMPTY_PATTERN.test(hashKey);
	if (!mayBeEmpty) return lines;
	const emptyTests = hashKey.match(/\{[^{}]+\}/g)!.map(placeholder => `vars ${placeholder} ""`);
	return [
		...[`when ${emptyTests.join(' and ')} {`, `\t${assignmentLine(firstShare.args[0] ?? '')}`, '} else {'],
		...lines.map(line => `\t${line}`),
		'}',
	];
}
