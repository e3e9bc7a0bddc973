/** What a configuration is called that nobody named, and which names the fs server leaves alone. */

/** The file that is used where none is named. */
export const CONFIGURATION_NAME = "agentd.yaml";

/**
 * Whether a file is called as a configuration of ours may be: the name that is looked for, its usual
 * variants, and what some file systems take for the same: other case, dots and spaces at the end, a
 * stream after a colon.
 */
export function isConfigurationName(name: string): boolean {
  return /^agentd\.(?:ya?ml|json)(?:[. ]*|:.*)$/i.test(name);
}
