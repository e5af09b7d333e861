/** Lowering and schema of the filters of `format filter`, which edit single fields of log entries. */

import type { FilterReplacement, LogFilter, ParameterAction } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';

function filterSchema(
	filter: string,
	properties: { readonly [name: string]: Schema },
	requiredNames: string[] = [],
): Schema {
	return {
		type: 'object',
		properties: { filter: { const: filter }, ...properties },
		required: ['filter', ...requiredNames],
		additionalProperties: false,
	};
}

const ACTIONS_SCHEMA: Schema = {
	type: 'array',
	description: 'Actions on parameters, in order.',
	items: {
		type: 'object',
		properties: {
			action: { enum: ['replace', 'hash', 'delete'], description: 'The action.' },
			name: { type: 'string', minLength: 1, description: 'Name of the parameter or cookie.' },
			value: { type: 'string', description: 'For `replace`: the new value.' },
		},
		required: ['action', 'name'],
		additionalProperties: false,
	},
};

export const LOG_FILTER_SCHEMA: Schema = {
	type: 'object',
	description: 'The action on the field.',
	discriminator: { propertyName: 'filter' },
	oneOf: [
		filterSchema('delete', {}),
		filterSchema('hash', {}),
		filterSchema('rename', { name: { type: 'string', minLength: 1, description: 'The new name.' } }, ['name']),
		filterSchema('replace', { value: { type: 'string', description: 'The new value.' } }, ['value']),
		filterSchema('ip_mask', {
			ipv4: {
				type: 'integer',
				minimum: 0,
				maximum: 32,
				description: 'Bits of an IPv4 address to keep; default all.',
			},
			ipv6: {
				type: 'integer',
				minimum: 0,
				maximum: 128,
				description: 'Bits of an IPv6 address to keep; default all.',
			},
		}),
		filterSchema('query', { actions: ACTIONS_SCHEMA }, ['actions']),
		filterSchema('cookie', { actions: ACTIONS_SCHEMA }, ['actions']),
		filterSchema('set_cookie', { actions: ACTIONS_SCHEMA }, ['actions']),
		filterSchema(
			'regexp',
			{
				rules: {
					type: 'array',
					minItems: 1,
					description: 'Replacements, in order.',
					items: {
						type: 'object',
						properties: {
							find: { type: 'string', description: 'Regular expression.' },
							replace: { type: 'string', description: 'Replacement text; `$1` inserts a group.' },
						},
						required: ['find', 'replace'],
						additionalProperties: false,
					},
				},
			},
			['rules'],
		),
	],
};

const FILTER_NAMES = [
	...(['delete', 'rename', 'replace', 'hash', 'ip_mask', 'query', 'cookie', 'set_cookie', 'regexp'] as const),
	'multi_regexp',
] as const;

/** Lowers lines `FIELD FILTER …` into `filterByPath`. The `regexp` lines of a field become one filter with a rule for each. */
export function lowerFilterFields(
	lines: readonly Line[],
	filterByPath: { [path: string]: LogFilter },
	cx: LowerContext,
): void {
	for (const line of lines) {
		const [fieldWord, filterWord, ...args] = line.words as readonly [Word, Word, ...Word[]];
		if (!filterWord) {
			cx.count(line, [], 1, 1, '<field> <filter> …');
			continue;
		}
		const kind = cx.oneOf(filterWord, FILTER_NAMES, 'log filter');
		const filter = kind && lowerFilter(kind, args, line, cx);
		if (!filter) continue;
		const path = fieldWord.text;
		const earlierFilter = Object.hasOwn(filterByPath, path) ? filterByPath[path] : undefined;
		let mergedFilter = filter;
		if (earlierFilter?.filter === 'regexp' && filter.filter === 'regexp' && kind === 'regexp') {
			mergedFilter = { filter: 'regexp', rules: [...earlierFilter.rules, ...filter.rules] };
		} else if (earlierFilter) {
			const isMixed = earlierFilter.filter === 'regexp' || filter.filter === 'regexp';
			const message = isMixed
				? `cannot mix regexp filters with other filter types for field ${path}`
				: `field ${path} already has a filter; multiple non-regexp filters per field are not supported`;
			cx.problem('error', 'log/filter-twice', fieldWord.span, message);
			continue;
		}
		cx.origin(mergedFilter, line.span);
		Object.defineProperty(filterByPath, path, {
			value: mergedFilter,
			enumerable: true,
			configurable: true,
			writable: true,
		});
	}
}

function lowerFilter(
	kind: (typeof FILTER_NAMES)[number],
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): LogFilter | undefined {
	const checkArguments = (argumentCount: number, usage: string): boolean =>
		cx.noBlock(line) && cx.count(line, args, argumentCount, argumentCount, `<field> ${usage}`);
	switch (kind) {
		case 'delete':
		case 'hash':
			return checkArguments(0, kind) ? { filter: kind } : undefined;
		case 'rename':
			return checkArguments(1, 'rename <name>') ? { filter: 'rename', name: args[0]!.text } : undefined;
		case 'replace':
			return checkArguments(1, 'replace <text>') ? { filter: 'replace', value: args[0]!.text } : undefined;
		case 'ip_mask':
			return lowerIpMask(args, line, cx);
		case 'query':
		case 'cookie':
		case 'set_cookie':
			cx.count(line, args, 0, 0, `<field> ${kind} { replace <name> <value>; hash <name>; delete <name> }`);
			return { filter: kind, actions: lowerParameterActions(kind, line, cx) };
		case 'regexp': {
			if (!checkArguments(2, 'regexp <expression> <replacement>')) return undefined;
			const find = cx.regexp(args[0]!);
			return find === undefined ? undefined : { filter: 'regexp', rules: [{ find, replace: args[1]!.text }] };
		}
		case 'multi_regexp': {
			cx.count(line, args, 0, 0, '<field> multi_regexp { regexp <expression> <replacement>… }');
			const rules: FilterReplacement[] = [];
			const lowerRule: SubdirectiveHandler = (words, innerLine) => {
				if (!cx.count(innerLine, words, 2, 2, 'regexp <expression> <replacement>')) return;
				const find = cx.regexp(words[0]!);
				if (find !== undefined) rules.push({ find, replace: words[1]!.text });
			};
			cx.subdirectives(line.block, { regexp: lowerRule }, 'multi_regexp');
			if (rules.length > 0) return { filter: 'regexp', rules };
			if (!line.block?.lines.length)
				cx.problem('error', 'log/empty-filter', line.words[1]!.span, '`multi_regexp` contains no `regexp`.');
			return undefined;
		}
	}
}

function lowerIpMask(args: readonly Word[], line: Line, cx: LowerContext): LogFilter {
	const keptBits: { ipv4?: number; ipv6?: number } = {};
	const setBits = (name: 'ipv4' | 'ipv6', word: Word | undefined): void => {
		const bits = word && cx.integer(word, 0, name === 'ipv4' ? 32 : 128);
		if (bits !== undefined) keptBits[name] = bits;
	};
	if (cx.count(line, args, 0, 2, '<field> ip_mask [<ipv4 bits> [<ipv6 bits>]]')) {
		setBits('ipv4', args[0]);
		setBits('ipv6', args[1]);
	}
	const bitsHandler =
		(name: 'ipv4' | 'ipv6'): SubdirectiveHandler =>
		(words, innerLine) => {
			if (cx.count(innerLine, words, 1, 1, `${name} <bits>`)) setBits(name, words[0]);
		};
	cx.subdirectives(line.block, { ipv4: bitsHandler('ipv4'), ipv6: bitsHandler('ipv6') }, 'ip_mask');
	return { filter: 'ip_mask', ...keptBits };
}

function lowerParameterActions(kind: string, line: Line, cx: LowerContext): ParameterAction[] {
	const actions: ParameterAction[] = [];
	const actionHandler =
		(action: ParameterAction['action'], argumentCount: number): SubdirectiveHandler =>
		(words, innerLine) => {
			const usage = action === 'replace' ? 'replace <name> <value>' : `${action} <name>`;
			if (!cx.count(innerLine, words, argumentCount, argumentCount, usage)) return;
			actions.push({ action, name: words[0]!.text, ...(words[1] ? { value: words[1].text } : {}) });
		};
	cx.subdirectives(
		line.block,
		{ replace: actionHandler('replace', 2), hash: actionHandler('hash', 1), delete: actionHandler('delete', 1) },
		kind,
	);
	return actions;
}
