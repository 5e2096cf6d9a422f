(workflow planner-worker-review
  (metadata
    (label "Planner/Worker review loop"))

  (roles
    (planner :agent-kind "claude-code" :handle-ref "agent-a")
    (implementer :agent-kind "claude-code" :handle-ref "agent-b"))

  (state start
    (wait (signal plan/ready :key @workflow-id)))

  (state handoff
    (action
      (send-prompt
        :agent planner
        :template "Share your plan with implementer: ~a"
        :args ((signal plan/summary :key @workflow-id))))
    (await (transcript-response :request-id handoff-request)))

  (state review
    (loop
      (action
        (send-prompt
          :agent planner
          :template "Review implementer's changes:\n~a"
          :args ((artifact implementer)))
        (await (transcript-response :request-id review-request)))

      (branch
        (on (signal review/satisfied :key @workflow-id)
            (goto complete))
        (otherwise
          (action
            (send-prompt
              :agent implementer
              :template "Planner feedback:\n~a"
              :args ((feedback planner))))
          (await (transcript-response :request-id implementer-fix))))))

  (state complete
    (terminal)))
