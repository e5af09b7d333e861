/** Bundles of worker threads have short local names, but the names that stack traces show stay as they are. */
import { runInThisContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { shortenLocalNames } from '../../../cli/packaging/local-names.ts';

const names = suite('local names');

const CODE = `
class RegistryOfThings {
	#thingsByName = new Map();
	#listener = name => { throw new Error('heard, a#waitForThing() #noticeThing(' + name); };
	addThing(nameOfThing) {
		this.#noticeThing(nameOfThing);
	}
	async#waitForThing() {
		await 0;
	}
	#noticeThing(nameOfThing) {
		this.#waitForThing();
		this.#thingsByName.set(nameOfThing, #noticeThing in this);
		this.#listener(String([...this.#thingsByName]));
	}
}
function useRegistry(argumentOfUse) {
	const localRegistry = new RegistryOfThings();
	localRegistry.addThing(argumentOfUse);
}
useRegistry;
`;

names('names of variables, parameters and private fields are shortened', async () => {
	const shortened = await shortenLocalNames(CODE);
	assert.not.match(shortened, /nameOfThing|argumentOfUse|localRegistry|thingsByName/);
});

names('stack traces show the same names as before', async () => {
	const failure = (code: string): Error => {
		const useRegistry = runInThisContext(code) as (value: string) => void;
		try {
			useRegistry('thing');
		} catch (error) {
			return error as Error;
		}
		throw new Error('It did not throw.');
	};
	const functionsOf = ({ stack }: Error): (string | undefined)[] =>
		[...stack!.matchAll(/^ +at (\S+)/gm)].slice(0, 4).map(([, name]) => name);
	const original = failure(`{${CODE}}`);
	const shortened = failure(`{${await shortenLocalNames(CODE)}}`);
	assert.is(shortened.message, 'heard, a#waitForThing() #noticeThing(thing,true');
	assert.is(shortened.message, original.message);
	assert.equal(functionsOf(shortened), functionsOf(original));
	assert.ok(functionsOf(original).includes('#noticeThing'), functionsOf(original).join());
});

names.run();
