/** Compiles a `lookup` step: one function per destination, which is called when its placeholder is used. */

import { MAPPED_VARIABLE_PREFIX, type MappedValue } from '../../../codegen/context/mapped-names.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import type { LookupStep, MapOutput } from './map.ts';

/** Returns the value for a source string. The output of a single mapping returns undefined if the mapping does not match. */
type Output = (x: Exchange, source: string) => unknown;

export function compileLookup(step: LookupStep, cx: CompileContext, next: Handler): Handler {
	const source = cx.template(step.source, 'empty');
	const entries = step.destinations.map((name, column) => ({
		key: MAPPED_VARIABLE_PREFIX + name,
		value: createMappedValue(x => source.constant ?? source.render(x), compileOutput(step, column, cx)),
	}));
	return x => {
		for (const { key, value } of entries) if (x.variable(key) === undefined) x.variables.set(key, value);
		return next(x);
	};
}

/**
 * Returns a value that is evaluated on demand. If the source refers to its own destination, the destination is empty there, which
 * prevents infinite recursion.
 */
function createMappedValue(source: (x: Exchange) => string, output: Output): MappedValue {
	let isEvaluating = false;
	return x => {
		if (isEvaluating) return '';
		isEvaluating = true;
		try {
			return output(x, source(x));
		} finally {
			isEvaluating = false;
		}
	};
}

function compileOutput(step: LookupStep, column: number, cx: CompileContext): Output {
	const defaultOutput = literalOutput(step.defaults?.[column] ?? '', cx);
	const mappings = step.mappings.filter(mapping => (mapping.outputs[column] ?? null) !== null);
	if (mappings.every(mapping => mapping.input !== undefined)) {
		const outputs = new Map<string, Output>();
		for (const { input, outputs: values } of mappings) {
			if (!outputs.has(input!)) outputs.set(input!, literalOutput(values[column]!, cx));
		}
		return (x, source) => (outputs.get(source) ?? defaultOutput)(x, source);
	}
	const mappingOutputs = mappings.map(({ input, input_regexp: expression, outputs }) => {
		if (expression !== undefined) return regexpOutput(expression, String(outputs[column]), cx);
		const output = literalOutput(outputs[column]!, cx);
		return (x: Exchange, source: string) => (source === input ? output(x, source) : undefined);
	});
	return (x, source) => {
		for (const output of mappingOutputs) {
			const value = output(x, source);
			if (value !== undefined) return value;
		}
		return defaultOutput(x, source);
	};
}

function literalOutput(value: MapOutput, cx: CompileContext): Output {
	if (typeof value !== 'string') return () => value;
	const template = cx.template(value, 'empty');
	const { constant } = template;
	return constant === undefined ? x => template.render(x) : () => constant;
}

/** Compiles the output of a regular expression. Groups, such as `$1` or `${name}`, are inserted; placeholders are not. */
function regexpOutput(pattern: string, outputText: string, cx: CompileContext): Output {
	const regexp = cx.regexp(pattern);
	const pieces = outputText.split(/(\$\$|\$\w+|\$\{\w+\})/);
	return (_x, sourceText) => {
		const match = regexp.exec(sourceText);
		if (!match) return undefined;
		let output = '';
		for (const piece of pieces) output += piece.startsWith('$') && piece.length > 1 ? expandGroup(match, piece) : piece;
		return output;
	};
}

function expandGroup(match: RegExpExecArray, piece: string): string {
	if (piece === '$$') return '$';
	const name = piece.replace(/[${}]/g, '');
	return (/^\d+$/.test(name) ? match[Number(name)] : match.groups?.[name]) ?? '';
}
