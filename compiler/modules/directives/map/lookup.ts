/** Compiles a `lookup` step: one function per destination, which is called when its placeholder is used. */

import { MAPPED_VARIABLE_PREFIX, type MappedValue } from '../../../codegen/context/mapped-names.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import type { LookupStep, MapOutput } from './map.ts';

/**
 * Computes the value of a destination for a source string. If the function is for a single mapping, it returns undefined if the
 * mapping does not match.
 */
type OutputFunction = (x: Exchange, sourceText: string) => unknown;

export function compileLookup(step: LookupStep, cx: CompileContext, next: Handler): Handler {
	const sourceTemplate = cx.template(step.source, 'empty');
	const variables = step.destinations.map((name, column) => ({
		key: MAPPED_VARIABLE_PREFIX + name,
		value: createMappedValue(
			x => sourceTemplate.constant ?? sourceTemplate.render(x),
			compileDestination(step, column, cx),
		),
	}));
	return x => {
		for (const { key, value } of variables) if (x.variable(key) === undefined) x.variables.set(key, value);
		return next(x);
	};
}

/**
 * Returns a value that is evaluated on demand. If the source itself refers to this destination, the destination is empty while
 * the source is evaluated, which prevents infinite recursion.
 */
function createMappedValue(renderSource: (x: Exchange) => string, computeOutput: OutputFunction): MappedValue {
	let isEvaluating = false;
	return x => {
		if (isEvaluating) return '';
		isEvaluating = true;
		try {
			return computeOutput(x, renderSource(x));
		} finally {
			isEvaluating = false;
		}
	};
}

function compileDestination(step: LookupStep, column: number, cx: CompileContext): OutputFunction {
	const defaultOutput = compileLiteral(step.defaults?.[column] ?? '', cx);
	const mappings = step.mappings.filter(mapping => (mapping.outputs[column] ?? null) !== null);
	if (mappings.every(mapping => mapping.input !== undefined)) {
		const outputByInput = new Map<string, OutputFunction>();
		for (const { input, outputs: values } of mappings) {
			if (!outputByInput.has(input!)) outputByInput.set(input!, compileLiteral(values[column]!, cx));
		}
		return (x, sourceText) => (outputByInput.get(sourceText) ?? defaultOutput)(x, sourceText);
	}
	const mappingOutputs = mappings.map(({ input, input_regexp: expression, outputs }) => {
		if (expression !== undefined) return compileRegexpOutput(expression, String(outputs[column]), cx);
		const output = compileLiteral(outputs[column]!, cx);
		return (x: Exchange, sourceText: string) => (sourceText === input ? output(x, sourceText) : undefined);
	});
	return (x, sourceText) => {
		for (const output of mappingOutputs) {
			const value = output(x, sourceText);
			if (value !== undefined) return value;
		}
		return defaultOutput(x, sourceText);
	};
}

function compileLiteral(value: MapOutput, cx: CompileContext): OutputFunction {
	if (typeof value !== 'string') return () => value;
	const template = cx.template(value, 'empty');
	const { constant } = template;
	return constant === undefined ? x => template.render(x) : () => constant;
}

/** Compiles the output of a regular expression. Groups, such as `$1` or `${name}`, are inserted; placeholders are not. */
function compileRegexpOutput(pattern: string, outputText: string, cx: CompileContext): OutputFunction {
	const regexp = cx.regexpFor(pattern);
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
