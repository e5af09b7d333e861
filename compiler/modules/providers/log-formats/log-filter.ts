/** Filters of `format filter`, which edit single log fields: lowering and schema. */

import type { FilterReplacement, LogFilter, ParameterAction } from '../../../document/log-settings.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';

function variant(filter: string, properties: { readonly [name: string]: Schema }, required: string[] = []): Schema {
	return {
		type: 'object',
		properties: { filter: { const: filter }, ...properties },
		required: ['filter', ...required],
		additionalProperties: false,
	};
}

const ACTIONS: Schema = {
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
		variant('delete', {}),
		variant('hash', {}),
		variant('rename', { name: { type: 'string', minLength: 1, description: 'The new name.' } }, ['name']),
		variant('replace', { value: { type: 'string', description: 'The new value.' } }, ['value']),
		variant('ip_mask', {
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
		variant('query', { actions: ACTIONS }, ['actions']),
		variant('cookie', { actions: ACTIONS }, ['actions']),
		variant('set_cookie', { actions: ACTIONS }, ['actions']),
		variant(
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

const FILTERS = [
	...(['delete', 'rename', 'replace', 'hash', 'ip_mask', 'query', 'cookie', 'set_cookie', 'regexp'] as const),
	'multi_regexp',
] as const;

/** Lowers lines `FIELD FILTER …`. Several `regexp`s for one field run in order. */
export function lowerFilterFields(
	lines: readonly Line[],
	fields: { [path: string]: LogFilter },
	cx: LowerContext,
): void {
	for (const line of lines) {
		const [field, word, ...args] = line.words as readonly [Word, Word, ...Word[]];
		if (!word) {
			cx.count(line, [], 1, 1, '<field> <filter> …');
			continue;
		}
		const kind = cx.oneOf(word, FILTERS, 'log filter');
		const filter = kind && lowerOne(kind, args, line, cx);
		if (!filter) continue;
		const path = field.text;
		const earlier = Object.hasOwn(fields, path) ? fields[path] : undefined;
		let value = filter;
		if (earlier?.filter === 'regexp' && filter.filter === 'regexp' && kind === 'regexp') {
			value = { filter: 'regexp', rules: [...earlier.rules, ...filter.rules] };
		} else if (earlier) {
			const mixed = earlier.filter === 'regexp' || filter.filter === 'regexp';
			const message = mixed
				? `cannot mix regexp filters with other filter types for field ${path}`
				: `field ${path} already has a filter; multiple non-regexp filters per field are not supported`;
			cx.problem('error', 'log/filter-twice', field.span, message);
			continue;
		}
		cx.origin(value, line.span);
		Object.defineProperty(fields, path, { value, enumerable: true, configurable: true, writable: true });
	}
}

function lowerOne(
	kind: (typeof FILTERS)[number],
	args: readonly Word[],
	line: Line,
	cx: LowerContext,
): LogFilter | undefined {
	const plain = (count: number, usage: string): boolean =>
		cx.noBlock(line) && cx.count(line, args, count, count, `<field> ${usage}`);
	switch (kind) {
		case 'delete':
		case 'hash':
			return plain(0, kind) ? { filter: kind } : undefined;
		case 'rename':
			return plain(1, 'rename <name>') ? { filter: 'rename', name: args[0]!.text } : undefined;
		case 'replace':
			return plain(1, 'replace <text>') ? { filter: 'replace', value: args[0]!.text } : undefined;
		case 'ip_mask':
			return lowerMask(args, line, cx);
		case 'query':
		case 'cookie':
		case 'set_cookie':
			cx.count(line, args, 0, 0, `<field> ${kind} { replace <name> <value>; hash <name>; delete <name> }`);
			return { filter: kind, actions: lowerActions(kind, line, cx) };
		case 'regexp': {
			if (!plain(2, 'regexp <expression> <replacement>')) return undefined;
			const find = cx.regexp(args[0]!);
			return find === undefined ? undefined : { filter: 'regexp', rules: [{ find, replace: args[1]!.text }] };
		}
		case 'multi_regexp': {
			cx.count(line, args, 0, 0, '<field> multi_regexp { regexp <expression> <replacement>… }');
			const rules: FilterReplacement[] = [];
			const take: SubdirectiveHandler = (words, at) => {
				if (!cx.count(at, words, 2, 2, 'regexp <expression> <replacement>')) return;
				const find = cx.regexp(words[0]!);
				if (find !== undefined) rules.push({ find, replace: words[1]!.text });
			};
			cx.subdirectives(line.block, { regexp: take }, 'multi_regexp');
			if (rules.length > 0) return { filter: 'regexp', rules };
			if (!line.block?.lines.length)
				cx.problem('error', 'log/empty-filter', line.words[1]!.span, '`multi_regexp` contains no `regexp`.');
			return undefined;
		}
	}
}

function lowerMask(args: readonly Word[], line: Line, cx: LowerContext): LogFilter {
	const mask: { ipv4?: number; ipv6?: number } = {};
	const set = (name: 'ipv4' | 'ipv6', word: Word | undefined): void => {
		const bits = word && cx.integer(word, 0, name === 'ipv4' ? 32 : 128);
		if (bits !== undefined) mask[name] = bits;
	};
	if (cx.count(line, args, 0, 2, '<field> ip_mask [<ipv4 bits> [<ipv6 bits>]]')) {
		set('ipv4', args[0]);
		set('ipv6', args[1]);
	}
	const one =
		(name: 'ipv4' | 'ipv6'): SubdirectiveHandler =>
		(words, at) => {
			if (cx.count(at, words, 1, 1, `${name} <bits>`)) set(name, words[0]);
		};
	cx.subdirectives(line.block, { ipv4: one('ipv4'), ipv6: one('ipv6') }, 'ip_mask');
	return { filter: 'ip_mask', ...mask };
}

function lowerActions(kind: string, line: Line, cx: LowerContext): ParameterAction[] {
	const actions: ParameterAction[] = [];
	const take =
		(action: ParameterAction['action'], count: number): SubdirectiveHandler =>
		(words, at) => {
			const usage = action === 'replace' ? 'replace <name> <value>' : `${action} <name>`;
			if (!cx.count(at, words, count, count, usage)) return;
			actions.push({ action, name: words[0]!.text, ...(words[1] ? { value: words[1].text } : {}) });
		};
	cx.subdirectives(line.block, { replace: take('replace', 2), hash: take('hash', 1), delete: take('delete', 1) }, kind);
	return actions;
}
