/** Compiles a `lookup` step: one closure per destination, called when its placeholder is used. */

import { MAPPED_VARIABLE_PREFIX, type MappedValue } from '../../../codegen/context/mapped-names.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import type { LookupStep, MapOutput } from './map.ts';

/** Returns the value for a source string. An output that is made from a single mapping returns undefined if it does not match. */
type Output = (x: Exchange, source: string) => unknown;

/** Compiles a `lookup` step. */
export function compileLookup(step: LookupStep, cx: CompileContext, next: Handler): Handler {
	const source = cx.template(step.source, 'empty');
	const entries = step.destinations.map((name, at) => ({
		key: MAPPED_VARIABLE_PREFIX + name,
		value: mappedBy(x => source.constant ?? source.render(x), chosen(step, at, cx)),
	}));
	return x => {
		for (const { key, value } of entries) if (x.variable(key) === undefined) x.variables.set(key, value);
		return next(x);
	};
}

/**
 * Evaluates the source on demand. If the source refers to its own destination, the destination is empty there, which prevents
 * infinite recursion.
 */
function mappedBy(source: (x: Exchange) => string, output: Output): MappedValue {
	let busy = false;
	return x => {
		if (busy) return '';
		busy = true;
		try {
			return output(x, source(x));
		} finally {
			busy = false;
		}
	};
}

function chosen(step: LookupStep, at: number, cx: CompileContext): Output {
	const otherwise = literalOutput(step.defaults?.[at] ?? '', cx);
	const mappings = step.mappings.filter(mapping => (mapping.outputs[at] ?? null) !== null);
	if (mappings.every(mapping => mapping.input !== undefined)) {
		const outputs = new Map<string, Output>();
		for (const { input, outputs: values } of mappings) {
			if (!outputs.has(input!)) outputs.set(input!, literalOutput(values[at]!, cx));
		}
		return (x, source) => (outputs.get(source) ?? otherwise)(x, source);
	}
	const tests = mappings.map(({ input, input_regexp: expression, outputs }) => {
		if (expression !== undefined) return regexpOutput(expression, String(outputs[at]), cx);
		const output = literalOutput(outputs[at]!, cx);
		return (x: Exchange, source: string) => (source === input ? output(x, source) : undefined);
	});
	return (x, source) => {
		for (const test of tests) {
			const value = test(x, source);
			if (value !== undefined) return value;
		}
		return otherwise(x, source);
	};
}

function literalOutput(value: MapOutput, cx: CompileContext): Output {
	if (typeof value !== 'string') return () => value;
	const template = cx.template(value, 'empty');
	const { constant } = template;
	return constant === undefined ? x => template.render(x) : () => constant;
}

/** Compiles the output of a regular expression. It inserts groups, such as `$1` or `${name}`, but no placeholders. */
function regexpOutput(source: string, text: string, cx: CompileContext): Output {
	const regexp = cx.regexp(source);
	const pieces = text.split(/(\$\$|\$\w+|\$\{\w+\})/);
	return (_x, subject) => {
		const match = regexp.exec(subject);
		if (!match) return undefined;
		let output = '';
		for (const piece of pieces) output += piece.startsWith('$') && piece.length > 1 ? group(match, piece) : piece;
		return output;
	};
}

function group(match: RegExpExecArray, piece: string): string {
	if (piece === '$$') return '$';
	const name = piece.replace(/[${}]/g, '');
	return (/^\d+$/.test(name) ? match[Number(name)] : match.groups?.[name]) ?? '';
}
