; An agent works; its work passes when CI and a person have let it pass. What either of them objects to goes
; back to the agent, and what was decided on the work as it was before does not count any more.
;
;   raymond workflow start workflows/gate --label feature-42 --input "Add a --dry-run flag"
;   raymond signal gate/ci --key feature-42 --value passed            # the last line of a CI script
;   raymond signal gate/ci --key feature-42 --value "failed: $(tail -50 test.log)"
;   raymond signal gate/verdict --key feature-42 --value approved     # a person

(workflow gate
  (metadata
    (label "A gate by CI and by a person")
    (description "Work continues until CI has passed and a person has approved it."))

  (roles
    (worker :agent-kind "claude-code"))

  (state work
    (action
      (send-prompt
        :agent worker
        :template "Do this, and commit it:\n\n~a"
        :args (@context/input)
        :request-id work)
      (await (transcript-response :request-id work))))

  (state ci
    (action
      (log "waits for CI: raymond signal gate/ci --key ~a --value passed" @workflow-id))
    (wait (signal gate/ci :key @workflow-id :consume true :as outcome)
      :timeout "2h" :on-timeout late)
    (branch
      (on (matches @outcome "^passed") (goto person))
      (otherwise
        (action
          (retract gate/verdict :key @workflow-id)
          (send-prompt
            :agent worker
            :template "CI says:\n\n~a\n\nFix it, and commit that."
            :args (@outcome)
            :request-id fix)
          (await (transcript-response :request-id fix)))
        (goto ci))))

  (state person
    (action
      (log "waits for a person: raymond signal gate/verdict --key ~a --value approved" @workflow-id))
    (wait (signal gate/verdict :key @workflow-id :consume true :as verdict)
      :timeout "72h" :on-timeout late)
    (branch
      (on (matches @verdict "^approved") (goto passed))
      (otherwise
        (action
          (retract gate/ci :key @workflow-id)
          (send-prompt
            :agent worker
            :template "A person who looked at it says:\n\n~a\n\nChange it, and commit that."
            :args (@verdict)
            :request-id change)
          (await (transcript-response :request-id change)))
        (goto ci))))

  (state passed
    (terminal :result (feedback worker)))

  (state late
    (terminal :status failed :result "nobody decided in time")))
