import assert from "node:assert/strict";
import { CONFIGURATION_NAME, isConfigurationName } from "./config_name.ts";

Deno.test("isConfigurationName: the name that is looked for, and what passes for it somewhere", () => {
  const names: [string, boolean][] = [
    [CONFIGURATION_NAME, true],
    ["agentd.yml", true],
    ["agentd.json", true],
    ["AgentD.YAML", true],
    ["agentd.yaml. .", true],
    ["agentd.yaml::$DATA", true],
    ["agentd.yaml.bak", false],
    ["my-agentd.yaml", false],
    ["agentd", false],
    ["agentd.yaml2", false],
  ];
  for (const [name, is] of names) assert.equal(isConfigurationName(name), is, name);
});
